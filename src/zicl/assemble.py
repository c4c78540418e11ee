"""From settings to a pipeline that runs."""

from __future__ import annotations

from typing import NamedTuple

from zicl.config import Labelling, PromptSettings, Retrieval, Scoring
from zicl.demos import labeler as labelers
from zicl.demos.labels import Labels
from zicl.demos.prompt import Limits, PromptBuilder
from zicl.demos.synonyms import complete_synonyms, paper_table, random_unigrams
from zicl.demos.template import Template, get_template
from zicl.lm.base import LanguageModel
from zicl.pipeline import Pipeline
from zicl.retrieve.base import RETRIEVERS, Retriever
from zicl.retrieve.index import Searchable


class Settings(NamedTuple):
    """All settings of a pipeline."""

    retrieval: Retrieval
    labelling: Labelling
    prompt: PromptSettings
    scoring: Scoring


def assemble(
    labels: Labels,
    lm: LanguageModel,
    index: Searchable | None,
    settings: Settings,
    *,
    seed: int = 0,
    offline: bool = False,
    labeler: labelers.Labeler | None = None,
) -> Pipeline:
    """The pipeline of these settings, checked; ``labeler`` takes the place of the random labels."""
    retrieval, labelling, prompt, scoring = settings
    builder = prompt_builder(pick_template(prompt.template, labels), lm, prompt, scoring)
    # Labels that cannot be told apart, or leave no room, are found now and not at the first text.
    builder.build("x", [], labels.words)
    if index is not None and labelling.words == "synonyms":
        labels = complete_synonyms(labels, encoder=lambda: index.encoder, lm=lm, offline=offline)
    if labeler is None and retrieval.k:
        labeler = _random_labels(labels, labelling, seed, offline=offline)
    return Pipeline(
        labels=labels,
        builder=builder,
        lm=lm,
        scoring=scoring,
        k=retrieval.k,
        seed=seed,
        index=index,
        retriever=make_retriever(retrieval) if retrieval.k else None,
        labeler=labeler if retrieval.k else None,
    )


def make_retriever(settings: Retrieval) -> Retriever:
    """The retriever by name, with those of the settings it knows."""
    kind = RETRIEVERS.get(settings.method)
    known = getattr(kind, "__dataclass_fields__", {})
    options = {"pool": settings.pool, "exclude_self": settings.exclude_self}
    made: Retriever = kind(**{name: value for name, value in options.items() if name in known})
    return made


def prompt_builder(template: Template, lm: LanguageModel, prompt: PromptSettings, scoring: Scoring) -> PromptBuilder:
    """Writes prompts for one model, template and inference."""
    bos = lm.adds_bos if prompt.bos == "auto" else prompt.bos == "on"
    return PromptBuilder(
        tokenizer=lm.tokenizer,
        template=template,
        inference=scoring.inference,
        limits=Limits(prompt.tokens_per_demo, prompt.tokens_all_demos, prompt.tokens_input),
        context=lm.context,
        bos=bos,
    )


def pick_template(template: str | tuple[str, str], labels: Labels) -> Template:
    """A template by name or by its lines; ``auto`` is "review" for the paper's sentiment labels, else "text"."""
    if isinstance(template, tuple):
        return Template(*template)
    if template == "auto":
        return get_template("review" if paper_table(labels.words) else "text")
    return get_template(template)


def _random_labels(labels: Labels, labelling: Labelling, seed: int, *, offline: bool) -> labelers.RandomLabels:
    if labelling.words == "original":
        return labelers.original(labels)
    if labelling.words == "random-words":
        return labelers.random_words(labels, random_unigrams(offline=offline), seed)
    return labelers.synonyms(labels)
