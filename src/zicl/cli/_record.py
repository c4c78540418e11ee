"""The rows that zicl classify writes: what of a result goes into which column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zicl.apps.distill.answer import Answer
    from zicl.apps.distill.classifier import DistilledClassifier
    from zicl.classifier import ZICLClassifier
    from zicl.inputs.rows import Row
    from zicl.score.results import Result


def added_columns(classifier: ZICLClassifier | DistilledClassifier) -> list[str]:
    """The columns the output adds; those of a prompt and its scores only where there is a language model."""
    from zicl.apps.distill.classifier import DistilledClassifier

    names = classifier.labels_.names
    columns = ["predicted", "review", "probability", "margin", *(f"p:{name}" for name in names)]
    if isinstance(classifier, DistilledClassifier):
        return columns
    columns += [f"{kind}:{name}" for name in names for kind in ("log_likelihood", "tokens")]
    # What was compared is not always the first prompt's log-likelihood: nothing of it is lost.
    if classifier.ensemble_.compares_more:
        columns += [f"value:{name}" for name in names]
    if classifier.ensemble_.joins:
        columns += [f"term:{term}:{name}" for term in classifier.ensemble_.names for name in names]
    return [*columns, "demonstrations", "input_cut"]


def output_row(row: Row, result: Result | Answer, added: Sequence[str], review_below: float | None) -> dict[str, Any]:
    """A row of the output. One for a person to look at has no label, but all its probabilities."""
    from zicl.score.results import Result

    review = result.margin < (review_below or 0.0)
    made = {
        **row.columns,
        # A row that may choose from some of the labels has nothing to say of the others.
        **dict.fromkeys(added, None),
        "predicted": "" if review else result.label,
        "review": review,
        "probability": round(result.probabilities[result.label], 6),
        "margin": round(result.margin, 6),
        **{f"p:{name}": round(share, 6) for name, share in result.probabilities.items()},
    }
    if isinstance(result, Result):
        for score in result.scores:
            made[f"log_likelihood:{score.label}"] = round(score.log_likelihood, 5)
            made[f"tokens:{score.label}"] = score.tokens
            if f"value:{score.label}" in made:
                made[f"value:{score.label}"] = round(score.value, 5)
        labels = [score.label for score in result.scores]
        for term, values in result.terms.items():
            made |= {f"term:{term}:{label}": round(v, 5) for label, v in zip(labels, values, strict=True)}
        made |= {"demonstrations": result.prepared.prompt.kept, "input_cut": result.prepared.prompt.input_cut}
    return made
