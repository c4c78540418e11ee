"""Why a text got its label, as the API tells it. A sentence is named by its row, never by a file."""

from __future__ import annotations

from zicl.apps.serve import schema
from zicl.corpus.store import Sentence
from zicl.score.results import Result, Shown


def explained(result: Result) -> schema.ExplanationOut:
    """The demonstrations, the prompt and the scores of a result."""
    prompt, names = result.prepared.prompt, [score.label for score in result.scores]
    return schema.ExplanationOut(
        text=result.text,
        scores={
            s.label: schema.LabelScores(log_likelihood=s.log_likelihood, tokens=s.tokens, value=s.value)
            for s in result.scores
        },
        terms={term: dict(zip(names, values, strict=True)) for term, values in result.terms.items()},
        demonstrations=[_shown(demo) for demo in result.prepared.demos],
        prompt=schema.PromptParts(
            prefix=prompt.prefix.text,
            stem=prompt.stem.text,
            # Behind the labels' branches stand those of inputs without content, which are left out.
            branches=[
                schema.PromptBranch(label=name, given=branch.given.text, scored=branch.scored.text)
                for name, branch in zip(names, prompt.branches, strict=False)
            ],
            kept=prompt.kept,
            dropped=prompt.dropped,
            demos_cut=prompt.demos_cut,
            input_cut=prompt.input_cut,
        ),
    )


def sentence(found: Sentence, nearest: Sentence | None, similarity: float | None) -> schema.FoundSentence:
    """A sentence and how it was found."""
    return schema.FoundSentence(
        row=found.row,
        text=found.text,
        document=found.document,
        domain=found.domain,
        nearest=None if nearest is None else schema.Near(row=nearest.row, text=nearest.text),
        similarity=similarity,
        relation=_relation(found, nearest),
    )


def _relation(found: Sentence, nearest: Sentence | None) -> schema.Relation:
    if nearest is None:
        return "random"
    if nearest.row == found.row:
        return "nearest"
    beside = abs(nearest.row - found.row) == 1 and nearest.document == found.document
    return "neighbour" if beside else "domain"


def _shown(demo: Shown) -> schema.ShownSentence:
    found = sentence(demo.sentence, demo.nearest, demo.similarity)
    return schema.ShownSentence(**dict(found), label=demo.label, words=demo.words, kept=demo.kept)
