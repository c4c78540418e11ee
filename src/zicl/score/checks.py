"""Check settings against each other, the labels and the texts, before anything is loaded.

What is slow to import is imported by the one function that needs it: a command checks its options with the others.
"""

from __future__ import annotations

from collections.abc import Sequence

from zicl.config import Settings, parse_group
from zicl.exceptions import ConfigError
from zicl.inputs.pair import Text
from zicl.prompt.labels import NO_LABEL, SEPARATOR, Labels


def check_settings(labels: Labels, settings: Settings, texts: Sequence[Text] | None, budget: float | None) -> None:
    """Check all that ``fit`` is given."""
    from zicl.retrieve.strategies.base import RETRIEVERS
    from zicl.score.factory import pick_template
    from zicl.score.pipeline import check_fields

    retrieval, pile = settings.retrieval, settings.pile
    if retrieval.share > 1 and (retrieval.k == 0 or RETRIEVERS.get(retrieval.method).shared):
        raise ConfigError(
            "this method has no demonstrations that inputs could share in groups",
            hint="leave out `retrieval.share`",
        )
    if settings.labelling.shared and not RETRIEVERS.get(retrieval.method).shared:
        raise ConfigError(
            "labelling.shared is for inputs with the same demonstrations, and here each has its own",
            hint="leave it out, or use `retrieval.method='random'`",
        )
    if (learned := learns_from_texts(settings)) and not texts:
        raise ConfigError(
            f"{learned[0]} is fitted on texts, and fit() was given none",
            hint="give the texts to be labelled, or similar ones (`fit`)",
        )
    asks = settings.scoring.asks_lm
    if settings.calibration.method != "none" and not asks and settings.scoring.encoder_expert == "encoder":
        raise ConfigError(
            "the encoder expert has subtracted its bias already, and no other expert is asked",
            hint="leave out `calibrate`, or ask another: `scoring.experts=('encoder', 'direct')`",
        )
    learns_from_lm = bool(pile.lm_rows or budget)
    if (asks and (retrieval.share > 1 or settings.calibration.fits_priors)) or learns_from_lm:
        template = pick_template(settings.prompt.template, labels)
        for text in texts or ():
            check_fields(template, text)
    parse_group("scoring", settings.scoring.model_dump(), "scoring: ")
    if labels.counted and settings.calibration.method == "neutral":
        raise ConfigError("neutral sentences have no options to choose from", hint="use another calibration")
    check_decision(labels, settings, has_texts=bool(texts))
    check_pile(labels, settings, has_texts=bool(texts), spends=learns_from_lm)


def learns_from_texts(settings: Settings) -> list[str]:
    """Return what the settings cannot do without texts to fit on; most often nothing."""
    wanted = {
        "batch calibration": settings.calibration.fits_priors,
        "sharing demonstrations": settings.retrieval.share > 1,
        "a corpus that the texts join": settings.retrieval.include_fit_texts,
    }
    return [what for what, needed in wanted.items() if needed]


def check_pile(labels: Labels, settings: Settings, *, has_texts: bool, spends: bool) -> None:
    """Check that the settings of a pile can be followed; ``spends`` says whether the language model is to be asked."""
    pile, used = settings.pile, spends or settings.pile.shares is not None
    if pile.method == "none":
        if used:
            raise ConfigError(
                "a budget and shares are for learning from a pile, and this method does not",
                hint="use `method='z-icl+'`, or leave them out",
            )
        return
    if used and not has_texts:
        raise ConfigError(
            "shares and answers of the language model are for learning from texts, and fit() was given none",
            hint="give the texts to be labelled (`fit`), or leave them out",
        )
    if settings.scoring.encoder_expert is None:
        raise ConfigError(
            "a pile is learned from through an encoder, and no expert uses one",
            hint="name the encoder among others: `scoring.experts=('encoder', 'direct')`",
        )
    if labels.counted:
        raise ConfigError(
            "a pile has one set of labels, and here the options differ from text to text",
            hint="use another: `method='z-icl'`, `method='no-demos'` or `method='encoder'`",
        )
    names = [*labels.names, *filter(None, [settings.decision.none])]
    if pile.shares is not None and set(pile.shares) != set(names):
        raise ConfigError(
            f"the shares name {', '.join(sorted(pile.shares))}, the labels are {', '.join(names)}",
            hint="give each label its share, for example great=0.9,terrible=0.1",
        )


def check_decision(labels: Labels, settings: Settings, *, has_texts: bool) -> None:
    """Check that the decision fits the labels and the method, and that there is a pile to learn it from."""
    decision = settings.decision
    if decision.none is None and not decision.multi:
        return
    what = "none" if decision.none is not None else "multi"
    if decision.multi and (odd := [name for name in labels.names if SEPARATOR in name or name == NO_LABEL]):
        raise ConfigError(
            f"the label {odd[0]!r} cannot be one of several: they are written with {SEPARATOR} between them",
            hint="rename it",
        )
    if decision.none in labels.names:
        raise ConfigError(
            f"none is {decision.none!r}, which is one of the labels",
            hint="choose another name, for example 'none of these', or leave that label out",
        )
    if labels.counted:
        raise ConfigError(
            f"{what} needs one set of labels, and here the options differ from text to text", hint="leave it out"
        )
    if settings.pile.method == "none":
        raise ConfigError(
            f"{what!r} is learned from a pile, and this method learns from no texts", hint="use `method='z-icl+'`"
        )
    if not has_texts:
        raise ConfigError(
            f"{what!r} is learned from a pile, and no texts were given",
            hint="give the texts to be labelled, or similar ones (`fit`)",
        )
    if decision.multi and settings.pile.shares is not None:
        raise ConfigError(
            "shares are for labels that exclude each other, and multi allows several", hint="leave one out"
        )
    if decision.multi and settings.scoring.asks_lm:
        raise ConfigError(
            "multi judges each label by the encoder and the pile, and a language model compares labels",
            hint="`scoring.experts=('encoder',)`, or leave out `multi`",
        )
    thresholds = decision.threshold if isinstance(decision.threshold, dict) else {}
    if unknown := sorted(set(thresholds) - set(labels.names)):
        raise ConfigError(
            f"a threshold names {unknown[0]!r}, which is no label", hint=f"the labels are: {', '.join(labels.names)}"
        )
