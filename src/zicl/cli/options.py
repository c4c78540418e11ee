"""What is written in one option: labels, a template, a table."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast, get_type_hints

import typer

from zicl._util.process import go_offline
from zicl._util.progress import ProgressReport, silent
from zicl.cli.model_options import LOADING, REMOTE, LoadingOptions, RemoteOptions
from zicl.exceptions import ModelError, UsageError

if TYPE_CHECKING:
    from zicl.apps.distill.classifier import DistilledClassifier
    from zicl.classifier import ZICLClassifier
    from zicl.config import Retrieval
    from zicl.lm.base import LanguageModel
    from zicl.prompt.labels import Labels


def parse_labels(text: str, synonyms: list[str] | None = None) -> Labels:
    """Labels from 'terrible,great' or a labels.toml, with --synonyms applied."""
    from zicl.prompt.labels import Labels

    labels = Labels.of(text if text.endswith(".toml") else [part.strip() for part in text.split(",")])
    given: dict[str, list[str]] = {}
    for entry in synonyms or []:
        name, equals, word = entry.partition("=")
        if not equals or not word.strip():
            raise UsageError(f"--synonyms {entry!r}: expected LABEL=SYNONYM", hint="for example --synonyms great=good")
        given.setdefault(name.strip(), []).append(word)
    return labels.with_synonyms(given)


def parse_names(text: str | None) -> tuple[str, ...] | None:
    """Names separated by commas, if there are any."""
    return None if text is None else tuple(part.strip() for part in text.split(",") if part.strip())


def parse_template(text: str) -> str | tuple[str, str]:
    r"""A template's name, or its two lines; a line break inside one is written as \n."""
    text = text.replace("\\n", "\n")
    if "{" not in text:
        return text
    first, bar, second = text.partition("|")
    if not bar:
        raise UsageError(
            f"--template {text!r}: expected two lines separated by |",
            hint="'Review: {input}|Sentiment: {label}'",
        )
    return first, second


def parse_table(value: str) -> Any:
    """A setting that is a table, written as JSON."""
    try:
        return json.loads(value)
    except json.JSONDecodeError as error:
        raise UsageError(f"--set {value!r}: not JSON ({error.msg})", hint='write a table as {"great": 0.5}') from error


# -- Options that several commands share, and the classifier they describe.


CorpusOption = Annotated[Path | None, typer.Option("--corpus", "-c", help="A corpus built with 'zicl corpus build'.")]
WithOption = Annotated[Path | None, typer.Option("--with", help="A saved classifier; its settings are used.")]
LabelsOption = Annotated[
    str | None,
    typer.Option(
        "--labels", "-l", help="Label words, comma-separated, or a labels.toml; a number N: every row has N options."
    ),
]
SynonymsOption = Annotated[list[str] | None, typer.Option("--synonyms", help="LABEL=SYNONYM, as often as needed.")]
LMOption = Annotated[
    str | None, typer.Option("--lm", help="Catalog name, hf:ID, folder, gguf:FILE or http://HOST/v1#ID. [smollm2-135m]")
]
MethodOption = Annotated[
    str | None, typer.Option("--method", help="z-icl, z-icl+, naive, random-inputs or no-demos. [z-icl]")
]
RetrievalOption = Annotated[
    str | None,
    typer.Option("--retrieval", help="physical, nearest, diverse, random or domain-random; the method's by default."),
]
InferenceOption = Annotated[
    str | None,
    typer.Option("--inference", help="channel, P(text|label), direct, P(label|text), or both. [channel]"),
]
CalibrateOption = Annotated[
    str | None,
    typer.Option("--calibrate", help="batch, contextual, domain or pmi: subtract what a label gets for any text."),
]
ShareOption = Annotated[
    int | None, typer.Option("--share", help="About so many inputs share one set of demonstrations: faster. [1]")
]
FitOption = Annotated[
    str | None,
    typer.Option(
        "--fit", help="A file of unlabelled texts to fit --calibrate batch and --share on. [--file, if there is one]"
    ),
]
FitTextOption = Annotated[
    str | None, typer.Option("--text-column", help="The column of the file of --fit with the text. [text]")
]
KOption = Annotated[int | None, typer.Option("--k", help="Number of demonstrations. [16]")]
TemplateOption = Annotated[
    str | None,
    typer.Option(
        "--template", help="review, text, pair, choice, none, or your own: 'Review: {input}|Verdict: {label}'. [auto]"
    ),
]
SeedOption = Annotated[int | None, typer.Option("--seed", help="Decides every random draw. [0]")]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="Any other setting, as GROUP.NAME=VALUE: scoring.dtype=bfloat16, labelling.words=original …"
    ),
]
OfflineOption = Annotated[bool, typer.Option("--offline", help="Reach no network at all.")]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON on standard output, for machines.")]


@dataclass(frozen=True)
class ClassifierOptions(LoadingOptions):
    """What the shared options say; each field is an option of every command that takes a choice."""

    # Whether the settings are for the method that is named and no other.
    one_method: ClassVar[bool] = True

    corpus: CorpusOption = None
    saved: WithOption = None
    labels: LabelsOption = None
    synonyms: SynonymsOption = None
    lm: LMOption = None
    method: MethodOption = None
    retrieval: RetrievalOption = None
    inference: InferenceOption = None
    k: KOption = None
    template: TemplateOption = None
    calibrate: CalibrateOption = None
    share: ShareOption = None
    fit: FitOption = None
    seed: SeedOption = None
    settings: SetOption = None
    offline: OfflineOption = False

    def __post_init__(self) -> None:
        # A typo is found at once, not when texts are read and models loaded.
        if self.saved is None:
            self._settings()

    def classifier(
        self,
        texts: Callable[[], Sequence[Any]] | None = None,
        report: ProgressReport = silent,
        columns: Mapping[str, Any] | None = None,
    ) -> ZICLClassifier:
        """The fitted classifier these options describe, which has a language model.

        ``texts`` are those to fit on where --fit names none; ``columns`` those of the file it names.
        """
        from zicl.classifier import ZICLClassifier

        found = self.any_classifier(texts, report, columns)
        if not isinstance(found, ZICLClassifier):
            raise UsageError(
                f"{self.saved} is distilled: it has no language model, no prompt and no demonstrations",
                hint="name the classifier it was distilled from",
            )
        return found

    def any_classifier(
        self,
        texts: Callable[[], Sequence[Any]] | None = None,
        report: ProgressReport = silent,
        columns: Mapping[str, Any] | None = None,
    ) -> ZICLClassifier | DistilledClassifier:
        """The same; a saved one may also be distilled."""
        if self.offline:
            go_offline()
        if self.saved is not None:
            others = ("corpus", "saved", "lm", "offline", "opened", *REMOTE)
            own = [field.name for field in fields(self) if field.name not in others]
            given = [name.replace("settings", "set") for name in own if getattr(self, name) not in (None, [])]
            if given:
                raise UsageError(
                    f"--with brings its own settings, but --{', --'.join(given)} was given too",
                    hint="leave them out, or leave out --with",
                )
            from zicl.classifier import load

            return load(self.saved, index=self.corpus, lm=self._saved_lm(self.saved), offline=self.offline)
        classifier = self._new()
        if self.fit is not None and not classifier.learns():
            raise UsageError(
                f"--fit {self.fit}: nothing is fitted on texts with these options",
                hint="leave it out, or add --calibrate batch or --share 8",
            )
        return classifier.fit(self._fit_texts(texts, columns or {}), report=report)

    def _saved_lm(self, saved: Path) -> str | LanguageModel | None:
        """The model to use in place of the saved one; a saved one behind a server is opened with these options."""
        if self.lm is not None:
            return self.language_model(self.lm, offline=self.offline)
        if not any(getattr(self, name) not in (None, False) for name in REMOTE):
            return None
        from zicl._util.files import read_json
        from zicl.persistence import CLASSIFIER

        if not (saved / CLASSIFIER).is_file():
            # What loads it says so.
            return None
        note = read_json(saved / CLASSIFIER).get("lm")
        if note is None:
            raise UsageError(
                f"{saved} is distilled: it has no language model, and options for one behind a server were given",
                hint="leave them out",
            )
        lm = self.language_model(str(note.get("name")), offline=self.offline)
        if not isinstance(lm, str) and lm.identity != note["identity"]:
            raise ModelError(
                f"the model at {lm.name} is not the one {saved.name} was saved with",
                hint="its name, its tokenizer or the way it is asked changed: name it with --lm to use it knowingly",
            )
        return lm

    def fit_columns(self, text: str | None, pair: str | None = None) -> dict[str, str | None]:
        """The columns of the file that --fit names, for commands that read no other file."""
        if self.fit is None and (text or pair):
            raise UsageError(
                f"--{'text' if text else 'pair'}-column is a column of the file of --fit, and none was given",
                hint="leave it out; the second text of a pair is given with --pair",
            )
        return {"text_column": text or "text", "pair_column": pair}

    def _fit_texts(self, texts: Callable[[], Sequence[Any]] | None, columns: Mapping[str, Any]) -> Sequence[Any] | None:
        if self.fit is None:
            return None if texts is None else texts()
        from zicl.inputs.tables import read_rows

        return [row.text for row in read_rows(self.fit, **columns)]

    def _new(self) -> ZICLClassifier:
        from zicl.classifier import ZICLClassifier
        from zicl.config import get_method
        from zicl.lm.load import DEFAULT_LM

        if self.labels is None:
            raise UsageError(
                "no labels were given", hint="--labels terrible,great, a labels.toml, or --with a saved classifier"
            )
        settings = self._settings()
        if self.one_method:
            _check_shown(settings, get_method(self.method or "z-icl").retrieval)
        self._check_remote(settings)
        if self.labels.isdecimal() and self.synonyms:
            raise UsageError("options that are other words for every row have no synonyms", hint="leave out --synonyms")
        return ZICLClassifier(
            self.corpus,
            int(self.labels) if self.labels.isdecimal() else parse_labels(self.labels, self.synonyms),
            self.language_model(self.lm or DEFAULT_LM, offline=self.offline),
            method=self.method or "z-icl",
            seed=self.seed or 0,
            offline=self.offline,
            calibrate=settings.pop("calibration", None),
            **settings,
        )

    def _check_remote(self, settings: Mapping[str, Any]) -> None:
        """A model behind a server is not loaded, however that is said."""
        from zicl.lm.remote.settings import is_remote

        loading = {"device", "dtype", "batch_size"}
        given = sorted(settings["scoring"].model_fields_set & loading) if "scoring" in settings else []
        if given and self.lm is not None and is_remote(self.lm):
            self.check_loading(self.lm)
            raise UsageError(
                f"--set scoring.{given[0]} is for a model that is loaded here, and {self.lm} is behind a server",
                hint="leave it out: the server decides where its model is and in which numbers",
            )

    def searches_synonyms(self) -> bool:
        """Whether the models have to find synonyms of the labels, and may find none; labels are checked on the way."""
        if self.saved is not None or self.labels is None or self.labels.isdecimal():
            return False
        from zicl.config import Labelling, Retrieval, get_method
        from zicl.prompt.synonyms import needs_search

        preset, settings = get_method(self.method or "z-icl"), self._settings()
        retrieval = settings.get("retrieval", Retrieval()).over(preset.retrieval)
        labelling = settings.get("labelling", Labelling()).over(preset.labelling)
        searches = needs_search(parse_labels(self.labels, self.synonyms))
        return searches and retrieval.k > 0 and labelling.words == "synonyms"

    def _settings(self) -> dict[str, Any]:
        """The settings that were given, by group; wrong names and values are errors."""
        from pydantic import ValidationError

        from zicl._util.validation import config_error
        from zicl.config import GROUPS, get_method

        get_method(self.method or "z-icl")
        settings: dict[str, Any] = {}
        for name, values in self._groups().items():
            try:
                settings |= {name: GROUPS[name](**values)} if values else {}
            except ValidationError as error:
                raise config_error(error, GROUPS[name]) from error
        _check_names(settings)
        return settings

    def _groups(self) -> dict[str, dict[str, Any]]:
        """What was set, by group; the options with names of their own come last and win."""
        from zicl.config import GROUPS

        groups: dict[str, dict[str, Any]] = {name: {} for name in GROUPS}
        for entry in self.settings or []:
            name, equals, value = entry.partition("=")
            group, _, key = name.partition(".")
            if not equals or group not in groups or not key:
                raise UsageError(f"--set {entry!r}: expected GROUP.NAME=VALUE", hint=f"groups are: {', '.join(groups)}")
            groups[group][key] = parse_table(value) if value.startswith("{") else value
        named: dict[tuple[str, str], Any] = {
            ("retrieval", "k"): self.k,
            ("retrieval", "method"): self.retrieval,
            ("retrieval", "share"): self.share,
            ("scoring", "inference"): self.inference,
            **{("scoring", name): value for name, value in self.loading().items()},
            ("calibration", "method"): self.calibrate,
            ("prompt", "template"): None if self.template is None else parse_template(self.template),
        }
        for (group, key), chosen in named.items():
            if chosen is not None:
                groups[group][key] = chosen
        return groups


def _check_names(settings: dict[str, Any]) -> None:
    """The retriever and the template that were named are there."""
    if "retrieval" in settings and "method" in settings["retrieval"].model_fields_set:
        from zicl._util.registry import did_you_mean
        from zicl.retrieve.strategies.base import RETRIEVERS

        if (name := settings["retrieval"].method) not in RETRIEVERS.names():
            raise did_you_mean("retriever", name, RETRIEVERS.names())
    if "prompt" in settings and (template := settings["prompt"].template) != "auto":
        from zicl.prompt.template import Template, get_template

        _ = get_template(template) if isinstance(template, str) else Template(*template)


def _check_shown(settings: dict[str, Any], preset: Retrieval) -> None:
    """Where no demonstration is shown, nothing can be said of them."""
    retrieval = settings["retrieval"].over(preset) if "retrieval" in settings else preset
    if retrieval.k > 0:
        return
    said = {name: settings[name].model_fields_set - {"k"} for name in ("retrieval", "labelling") if name in settings}
    if given := [f"{group}.{name}" for group, names in said.items() for name in sorted(names)]:
        raise UsageError(
            f"no demonstrations are shown, and {', '.join(given)} was set",
            hint="leave it out, or show some: another --method, or another --k",
        )


# -- A command that takes all options of a dataclass.


def with_options(kind: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a dataclass: it is called with ``choice`` and its own parameters.

    Typer reads a command's options off its signature, so the signature is put together here, once.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "choice"]
        # Each name in the module that writes it: a choice may extend one of another module.
        hints = get_type_hints(kind, include_extras=True)
        shared = [p.replace(annotation=hints[p.name]) for p in inspect.signature(kind).parameters.values()]
        # Few need the options of loading, fewer those of servers: they come last.
        shared.sort(key=lambda parameter: (parameter.name in REMOTE, parameter.name in LOADING))

        def run(**values: Any) -> None:
            choice = kind(**{p.name: values.pop(p.name) for p in shared})
            try:
                command(choice=choice, **values)
            finally:
                if isinstance(choice, RemoteOptions):
                    choice.finish()

        parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*own, *shared)]
        cast(Any, run).__signature__ = inspect.Signature(parameters)
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        return run

    return decorate
