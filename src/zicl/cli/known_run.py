"""What is known of a run of zicl classify before a model is loaded: its columns, and most of its settings.

An output that was begun with other settings is refused here. What only a loaded model tells, such as its hash, is
compared when the output is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zicl.cli.output_columns import chosen_kinds, plain_columns

if TYPE_CHECKING:
    from zicl.apps.distill.classifier import DistilledContent
    from zicl.cli.classify_options import ClassifyOptions
    from zicl.config import Decision
    from zicl.score.manifest import ClassifierContent

ReadTexts = Callable[[], Sequence[Any]]


@dataclass(frozen=True)
class KnownRun:
    """The options of a run, and the columns that every classifier would add: ``possible`` ones, and those written."""

    options: ClassifyOptions
    possible: list[str]
    columns: list[str]

    @classmethod
    def of(cls, options: ClassifyOptions, kinds: Collection[str] | None, top: int | None, *, review: bool) -> KnownRun:
        """Return what is known of a run with these kinds of columns (None: the usual ones)."""
        chosen = chosen_kinds(kinds, top, review=review)
        every = [
            (kind, f"{prefix}{name}")
            for prefix, each in options.label_sets().items()
            for kind, name in plain_columns(_names(each), multi=_decision(each).multi, top=top)
        ]
        return cls(options, [name for _, name in every], [name for kind, name in every if kind in chosen])

    def check_resumes(
        self, output: Path, run: Mapping[str, Any], texts: ReadTexts | None, columns: Mapping[str, Any]
    ) -> None:
        """Refuse an output that was begun with other settings; ``run`` are those that are not the classifier's.

        ``texts`` are those to learn from where --fit names none, ``columns`` those of the file that it names.
        """
        from zicl.inputs.output import begun_settings, check_known_settings

        begun = begun_settings(output)
        if begun is None:
            return
        first, *others = (_fingerprint(each, texts, columns) for each in self.options.label_sets().values())
        written = begun.get("--columns", [])
        same = [name for name in written if name in self.possible] == self.columns
        known = {
            **first,
            "names": _names(self.options),
            "also": others,
            **run,
            # A classifier may add others to those that are known.
            "--columns": written if same else self.columns,
        }
        check_known_settings(output, begun, known)


def _names(options: ClassifyOptions) -> list[str]:
    """Return all that a text can get: the labels, and the name for none of them."""
    if options.saved is None:
        return [*options.named_labels().names, *filter(None, [_decision(options).none])]
    return [*_saved_content(options.saved).labels, *filter(None, [_decision(options).none])]


def _decision(options: ClassifyOptions) -> Decision:
    """Return how many labels a text gets; a distilled classifier gives each one."""
    from zicl.config import ONE_LABEL
    from zicl.score.manifest import ClassifierContent

    if options.saved is None:
        return options.resolved().decision
    content = _saved_content(options.saved)
    return content.settings.decision if isinstance(content, ClassifierContent) else ONE_LABEL


def _saved_content(saved: Path) -> ClassifierContent | DistilledContent:
    """Return what a saved classifier's folder holds."""
    from zicl.apps.distill.classifier import DistilledContent
    from zicl.persistence import read_content, read_folder
    from zicl.score.manifest import ClassifierContent

    content = read_folder(saved)
    return content if isinstance(content, ClassifierContent) else read_content(saved, DistilledContent)


def _fingerprint(options: ClassifyOptions, texts: ReadTexts | None, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the known part of a classifier's fingerprint."""
    if options.saved is not None:
        return _saved_fingerprint(options, options.saved)
    settings = options.resolved()
    known: dict[str, Any] = {name: group.model_dump(mode="json") for name, group in settings._asdict().items()}
    known["seed"] = options.seed or 0
    if settings.scoring.asks_lm:
        # Models choose the template, and may find synonyms.
        del known["prompt"]["template"]
    else:
        known |= {"labels": options.named_labels().to_toml(), "lm": None, "corpus": None}
    if settings.pile.lm_rows or options.budget is not None:
        # It is written how many texts the language model was asked about.
        del known["pile"]["lm_rows"]
    elif settings.pile.method != "none":
        source = _pile_source(options, texts, columns)
        known["fitted"] = {"pile": None if source is None else {"source": source}}
    return known


def _pile_source(options: ClassifyOptions, texts: ReadTexts | None, columns: Mapping[str, Any]) -> str | None:
    """Return the hash of what would be learned from; None if nothing would."""
    from zicl.score.fit import pile_source
    from zicl.score.gold import read_labels_of_texts

    given = None if texts is None else texts()
    if options.fit is not None:
        given = [row.text for row in options.read_fit(columns) if not row.empty]
    if given is None and options.gold is None:
        return None
    settings, (pile, gold) = options.resolved(), options.with_gold(given, columns)
    labelled = read_labels_of_texts(pile, map(gold.get, pile), options.named_labels(), settings.decision)
    return pile_source(pile, labelled, settings.pile, options.seed or 0)


def _saved_fingerprint(options: ClassifyOptions, saved: Path) -> dict[str, Any]:
    """Return what a saved classifier's folder says of its fingerprint; models may be named anew."""
    from zicl.score.manifest import ClassifierContent

    content = _saved_content(saved)
    known: dict[str, Any] = {}
    if options.encoder is None and options.corpus is None:
        known["encoder"] = None if content.encoder is None else content.encoder.identity
    if not isinstance(content, ClassifierContent):
        return {**known, "distilled": content.weights}
    known |= content.settings.model_dump(mode="json")
    known["seed"] = content.seed
    if options.lm is None:
        known["lm"] = None if content.lm is None else content.lm.identity
    pile = content.fitted.pile
    return {**known, "fitted": {"pile": None if pile is None else {"source": pile.source}}}
