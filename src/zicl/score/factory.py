"""Build what runs from settings, and check that it can run."""

from __future__ import annotations

from dataclasses import replace

from zicl._util.progress import ProgressReport, silent
from zicl.config import Labelling, PromptSettings, Retrieval, Settings
from zicl.exceptions import ConfigError
from zicl.lm.base import LanguageModel
from zicl.prompt import labelers
from zicl.prompt.builder import Inference, PromptBuilder, TokenLimits
from zicl.prompt.labels import Labels
from zicl.prompt.synonyms import complete_synonyms, needs_search, paper_table, random_unigrams, with_paper_synonyms
from zicl.prompt.template import Template, get_template
from zicl.retrieve.clusters import Clusters
from zicl.retrieve.index import Searchable
from zicl.retrieve.strategies.base import RETRIEVERS, Retriever
from zicl.score.calibration import make_probes
from zicl.score.ensemble import Ensemble
from zicl.score.experts import EncoderExpert
from zicl.score.pipeline import Pipeline
from zicl.score.self_labels import SelfLabels


def build_ensemble(
    labels: Labels,
    lm: LanguageModel | None,
    index: Searchable | None,
    settings: Settings,
    *,
    seed: int = 0,
    offline: bool = False,
    labeler: labelers.Labeler | None = None,
    clusters: Clusters | None = None,
    encoder_expert: EncoderExpert | None = None,
    retriever: Retriever | None = None,
    report: ProgressReport = silent,
) -> Ensemble:
    """Build the ensemble that the settings describe; ``labeler`` and ``retriever`` replace those of the settings."""
    pipelines: tuple[Pipeline, ...] = ()
    if settings.scoring.asks_lm:
        if lm is None:
            raise ConfigError("the settings ask a language model, and there is none", hint="name one: `lm=…`")
        retriever = retriever or (make_retriever(settings.retrieval) if settings.retrieval.k else None)
        if _searches_synonyms(labels, settings, index):
            report("looking for synonyms", 0, None)
        pipelines = _prompt_pipelines(labels, lm, index, settings, seed, labeler, clusters, retriever, offline=offline)
        labels = pipelines[0].labels if "prompt" in settings.scoring.experts else labels
    if settings.scoring.encoder_expert == "encoder":
        labels = with_paper_synonyms(labels)
    return Ensemble(labels, pipelines, encoder_expert if settings.scoring.encoder_expert else None)


def _searches_synonyms(labels: Labels, settings: Settings, index: Searchable | None) -> bool:
    """Return whether the models have to search synonyms, which takes a while."""
    shown = "prompt" in settings.scoring.experts and index is not None
    return shown and settings.labelling.words == "synonyms" and needs_search(labels)


def _prompt_pipelines(
    labels: Labels,
    lm: LanguageModel,
    index: Searchable | None,
    settings: Settings,
    seed: int,
    labeler: labelers.Labeler | None,
    clusters: Clusters | None,
    retriever: Retriever | None,
    *,
    offline: bool,
) -> tuple[Pipeline, ...]:
    """Return the pipelines of all experts that ask the language model, those with demonstrations first."""
    retrieval, labelling, prompt, scoring, calibration = settings[:5]
    template = pick_template(prompt.template, labels)
    alone: list[Inference] = [name for name in ("direct", "channel") if name in scoring.experts]
    shown: tuple[Inference, ...] = ()
    if "prompt" in scoring.experts:
        shown = ("channel", "direct") if scoring.inference == "both" else (scoring.inference,)
    builders = {inference: make_prompt_builder(template, lm, prompt, inference) for inference in (*shown, *alone)}
    for builder in builders.values():
        # Find labels with equal tokens, or that leave no room, now and not at the first text.
        builder.build("x", [], labels.words)
    if shown and index is not None and labelling.words == "synonyms":
        labels = complete_synonyms(labels, encoder=lambda: index.encoder, lm=lm, offline=offline)
    first = (*shown, *alone)[0]
    bare = Pipeline(
        labels=labels,
        builder=builders[first],
        lm=lm,
        scoring=scoring.model_copy(update={"inference": first}),
        seed=seed,
        label_seed=labelling.seed,
        shared_labels=labelling.shared,
        probes=make_probes(calibration, k=retrieval.k, bare_line=bool(template.input_line(""))),
    )

    def asking(base: Pipeline, inference: Inference, assignment: int = 0) -> Pipeline:
        settings = scoring.model_copy(update={"inference": inference})
        return replace(base, builder=builders[inference], scoring=settings, assignment=assignment)

    base = bare
    if retrieval.k and shown:
        base = replace(
            bare,
            k=retrieval.k,
            index=index,
            retriever=retriever,
            order=retrieval.order,
            clusters=clusters,
        )
        base = replace(base, labeler=labeler or _make_labeler(base, labelling, offline=offline))
    draws = range(labelling.assignments if base.k else 1)
    return (
        *(asking(base, inference, draw) for inference in shown for draw in draws),
        *(asking(bare, inference) for inference in alone),
    )


def make_retriever(settings: Retrieval) -> Retriever:
    """Return the retriever by name, with those settings that it has a field for."""
    kind = RETRIEVERS.get(settings.method)
    fields = getattr(kind, "__dataclass_fields__", {})
    options = {"pool": settings.pool, "exclude_self": settings.exclude_self, "neighbours": settings.neighbours}
    if settings.neighbours != "paragraph" and "neighbours" not in fields:
        raise ConfigError(
            f"retrieval.neighbours changes nothing with the retrieval {settings.method!r}",
            hint="it is for 'physical' (the method z-icl): leave it out",
        )
    made: Retriever = kind(**{name: value for name, value in options.items() if name in fields})
    return made


def make_prompt_builder(
    template: Template, lm: LanguageModel, prompt: PromptSettings, inference: Inference
) -> PromptBuilder:
    """Return the prompt builder for one model, template and inference."""
    bos = lm.adds_bos if prompt.bos == "auto" else prompt.bos == "on"
    return PromptBuilder(
        tokenizer=lm.tokenizer,
        template=template,
        inference=inference,
        limits=TokenLimits(prompt.tokens_per_demo, prompt.tokens_all_demos, prompt.tokens_input, prompt.tokens_prompt),
        context=lm.context,
        bos=bos,
    )


def pick_template(template: str | tuple[str, str], labels: Labels) -> Template:
    """Return a template by name or by its lines; ``auto`` is "review" for the paper's sentiment labels, else "text"."""
    if isinstance(template, tuple):
        return Template(*template)
    if template == "auto":
        return get_template("review" if paper_table(labels.words) else "text")
    return get_template(template)


def _make_labeler(base: Pipeline, labelling: Labelling, *, offline: bool) -> labelers.Labeler:
    if labelling.words == "none":
        return labelers.NoLabels()
    if labelling.words == "neighbours":
        if base.index is None:
            raise ConfigError("options are drawn from a corpus, and there is none", hint="name a corpus: `index=…`")
        if labelling.source == "self" or labelling.balanced:
            raise ConfigError(
                "options that differ from text to text are drawn from the sentences near a demonstration",
                hint="leave out `labelling.source` and `labelling.balanced`",
            )
        return labelers.NeighbourOptions(base.index, base.builder.cut_to_half_demo)
    seed = base.seed if labelling.seed is None else labelling.seed
    random_labels = _random_labels(base.labels, labelling, seed, offline=offline)
    if labelling.source == "random" or base.index is None:
        return random_labels
    if base.builder.template.two_fields:
        raise ConfigError(
            "the model's own labels are for single texts, not for pairs", hint="`labelling.source='random'`"
        )
    zero_shot = replace(base, k=0, index=None, retriever=None, clusters=None, probes=None)
    return SelfLabels(random_labels.words, zero_shot, base.index)


def _random_labels(labels: Labels, labelling: Labelling, seed: int, *, offline: bool) -> labelers.RandomLabels:
    if labelling.words == "original":
        words = labelers.original_words(labels)
    elif labelling.words == "random-words":
        words = labelers.random_words(labels, random_unigrams(offline=offline), seed)
    else:
        words = labelers.synonym_words(labels)
    return labelers.RandomLabels(words, balanced=labelling.balanced)
