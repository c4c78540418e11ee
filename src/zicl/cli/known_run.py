"""What is known of a run of zicl classify before a model is loaded: the columns that it adds."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from zicl.cli.output_columns import chosen_kinds, plain_columns

if TYPE_CHECKING:
    from zicl.apps.distill.classifier import DistilledContent
    from zicl.cli.classify_options import ClassifyOptions
    from zicl.config import Decision
    from zicl.score.manifest import ClassifierContent


def known_columns(
    options: ClassifyOptions, kinds: Collection[str] | None, top: int | None, *, review: bool
) -> list[str]:
    """Return the columns of these kinds (None: the usual ones) that every classifier would add."""
    chosen = chosen_kinds(kinds, top, review=review)
    return [
        f"{prefix}{name}"
        for prefix, each in options.label_sets().items()
        for kind, name in plain_columns(_names(each), multi=_decision(each).multi, top=top)
        if kind in chosen
    ]


def _names(options: ClassifyOptions) -> list[str]:
    """Return all that a text can get: the labels, and the name for none of them."""
    if options.saved is None:
        return [*options.named_labels().names, *filter(None, [_decision(options).none])]
    return [*_content(options.saved).labels, *filter(None, [_decision(options).none])]


def _decision(options: ClassifyOptions) -> Decision:
    """Return how many labels a text gets; a distilled classifier gives each one."""
    if options.saved is None:
        return options.resolved().decision
    from zicl.config import ONE_LABEL
    from zicl.score.manifest import ClassifierContent

    content = _content(options.saved)
    return content.settings.decision if isinstance(content, ClassifierContent) else ONE_LABEL


def _content(saved: Path) -> ClassifierContent | DistilledContent:
    """Return what the folder of a saved classifier of either kind holds."""
    from zicl.apps.distill.classifier import DistilledContent
    from zicl.persistence import read_content, read_folder
    from zicl.score.manifest import ClassifierContent

    content = read_folder(saved)
    return content if isinstance(content, ClassifierContent) else read_content(saved, DistilledContent)
