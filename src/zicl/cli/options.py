"""The options that describe a classifier, shared by classify, explain, prompt, suggest, distill and serve."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast, get_type_hints

import typer

from zicl._util.counts import counted
from zicl._util.process import go_offline
from zicl._util.progress import ProgressReport, silent
from zicl.cli.console import print_status
from zicl.cli.help import CLASSIFIER, INPUT, METHOD, MODEL
from zicl.cli.model_options import REMOTE, RemoteOptions, check_loading, parse_server
from zicl.cli.parsing import parse_labels, parse_settings, parse_shares, parse_template, parse_threshold
from zicl.cli.preflight import preflight
from zicl.cli.spelling import as_options
from zicl.exceptions import ModelError, UsageError

if TYPE_CHECKING:
    from zicl.apps.distill.classifier import DistilledClassifier
    from zicl.classifier import FitCompute, ZICLClassifier
    from zicl.config import Settings
    from zicl.inputs.tables import InputRow
    from zicl.lm.base import LanguageModel
    from zicl.prompt.labels import Labels


SynonymsOption = Annotated[
    list[str] | None,
    typer.Option("--synonyms", help="LABEL=SYNONYM; may be repeated.", rich_help_panel=CLASSIFIER),
]
FitTextOption = Annotated[
    str | None,
    typer.Option("--text-column", help="The text column of the file of --fit. [text]", rich_help_panel=INPUT),
]
SeedOption = Annotated[
    int | None, typer.Option("--seed", help="Decides every random draw. [0]", rich_help_panel=METHOD)
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Any other setting, as GROUP.NAME=VALUE: retrieval.method=diverse, retrieval.share=8, "
        "scoring.device=cuda, scoring.dtype=bfloat16, labelling.words=original …; may be repeated.",
        rich_help_panel=METHOD,
    ),
]
OfflineOption = Annotated[bool, typer.Option("--offline", help="Never use the network.", rich_help_panel=MODEL)]
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON to standard output, for machines.")]


@dataclass(frozen=True)
class ClassifierOptions(RemoteOptions):
    """The options of every command that makes or loads a classifier; each field is one."""

    # Whether the settings are for the named method and no other.
    one_method: ClassVar[bool] = True
    # Whether labels are needed where no saved classifier has them.
    needs_labels: ClassVar[bool] = True
    # That of zicl.config, whose import would slow every --help.
    default_method: ClassVar[str] = "z-icl+"

    corpus: Annotated[
        Path | None,
        typer.Option("--corpus", "-c", help="A corpus built with 'zicl corpus build'.", rich_help_panel=CLASSIFIER),
    ] = None
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            "-l",
            help="Label words, comma-separated, or a labels.toml; a number N if every row has N options.",
            rich_help_panel=CLASSIFIER,
        ),
    ] = None
    synonyms: SynonymsOption = None
    saved: Annotated[
        Path | None,
        typer.Option("--with", help="Use a saved classifier and its settings.", rich_help_panel=CLASSIFIER),
    ] = None
    fit: Annotated[
        str | None,
        typer.Option(
            "--fit",
            help="A file of unlabelled texts to learn from: the pile. [--file, if given]",
            rich_help_panel=CLASSIFIER,
        ),
    ] = None
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            help="z-icl+, encoder, z-icl (the paper's), naive, random-inputs or no-demos.",
            rich_help_panel=METHOD,
        ),
    ] = None
    experts: Annotated[
        str | None,
        typer.Option(
            "--experts",
            help="Whom to ask about each text, comma-separated: encoder, direct, channel, prompt. [the method's]",
            rich_help_panel=METHOD,
        ),
    ] = None
    shares: Annotated[
        str | None,
        typer.Option(
            "--shares", help="The labels' shares, where you know them: great=0.9,terrible=0.1.", rich_help_panel=METHOD
        ),
    ] = None
    none: Annotated[
        str | None,
        typer.Option(
            "--none",
            help="The name for texts that fit no label: --none other. Learned from the pile.",
            rich_help_panel=METHOD,
        ),
    ] = None
    multi: Annotated[
        bool,
        typer.Option("--multi", help="A text may have several labels, or none: judge each.", rich_help_panel=METHOD),
    ] = False
    threshold: Annotated[
        str | None,
        typer.Option(
            "--threshold",
            help="The probability from which on a text gets --none, or a label of --multi: 0.7, or sports=0.7.",
            rich_help_panel=METHOD,
        ),
    ] = None
    k: Annotated[int | None, typer.Option("--k", help="Number of demonstrations. [16]", rich_help_panel=METHOD)] = None
    inference: Annotated[
        str | None,
        typer.Option(
            "--inference",
            help="channel, P(text|label), direct, P(label|text), or both. [channel]",
            rich_help_panel=METHOD,
        ),
    ] = None
    template: Annotated[
        str | None,
        typer.Option(
            "--template",
            help="review, text, pair, choice, none, or your own: 'Review: {input}|Verdict: {label}'. [auto]",
            rich_help_panel=METHOD,
        ),
    ] = None
    calibrate: Annotated[
        str | None,
        typer.Option(
            "--calibrate",
            help="batch, neutral, contextual, domain or pmi: subtract what a label would get for any text.",
            rich_help_panel=METHOD,
        ),
    ] = None
    seed: SeedOption = None
    settings: SetOption = None
    lm: Annotated[
        str | None,
        typer.Option(
            "--lm",
            help="Catalog name, hf:ID, folder, gguf:FILE or http://HOST/v1#ID. [smollm2-135m]",
            rich_help_panel=MODEL,
        ),
    ] = None
    encoder: Annotated[
        str | None,
        typer.Option(
            "--encoder",
            help="Catalog name, folder or hub id of a sentence encoder. [bge-small-en-v1.5, or the corpus' own]",
            rich_help_panel=MODEL,
        ),
    ] = None
    offline: OfflineOption = False

    def __post_init__(self) -> None:
        # A mistake is found at once, not when texts are read and models loaded.
        if empty := [field.name for field in fields(self) if getattr(self, field.name) == ""]:
            # Most often a variable of a shell that is not set: the default is not what was meant.
            raise UsageError(f"--{empty[0].replace('_', '-')} is empty", hint="give it a value, or leave it out")
        if self.saved is None:
            if self.needs_labels and self.labels is None:
                raise UsageError(
                    "no labels were given", hint="--labels terrible,great, a labels.toml, or --with a saved classifier"
                )
            settings = self.resolved()
            self._check_fit(settings)
            if self.labels is not None:
                from zicl.score.checks import check_decision

                check_decision(self.parsed_labels(self.labels), settings, has_texts=True)
        else:
            self._check_alone()
        preflight(saved=self.saved, corpus=self.corpus, lm=self.lm, encoder=self.encoder, fit=self.fit)

    def classifier(
        self,
        texts: Callable[[], Sequence[Any]] | None = None,
        report: ProgressReport = silent,
        columns: Mapping[str, Any] | None = None,
    ) -> ZICLClassifier:
        """Return the fitted classifier that these options describe; it is not a distilled one.

        ``texts`` are those to fit on where --fit names none; ``columns`` those of the file it names.
        """
        from zicl.classifier import ZICLClassifier

        classifier = self.any_classifier(texts, report, columns)
        if not isinstance(classifier, ZICLClassifier):
            raise UsageError(
                f"{self.saved} is distilled: it has no language model, no prompt and no demonstrations",
                hint="name the classifier it was distilled from",
            )
        return classifier

    def any_classifier(
        self,
        texts: Callable[[], Sequence[Any]] | None = None,
        report: ProgressReport = silent,
        columns: Mapping[str, Any] | None = None,
        compute: FitCompute | None = None,
    ) -> ZICLClassifier | DistilledClassifier:
        """Return the same; a saved one may also be distilled. ``compute`` does the slow steps of a fit elsewhere."""
        if self.offline:
            go_offline()
        if self.saved is not None:
            return self._load(self.saved)
        with pile_warnings():
            return self._fit(self._new(), self._fit_texts(texts, columns or {}), columns or {}, compute, report)

    def _fit(
        self,
        classifier: ZICLClassifier,
        texts: Sequence[Any] | None,
        columns: Mapping[str, Any],
        compute: FitCompute | None,
        report: ProgressReport,
    ) -> ZICLClassifier:
        return classifier.fit(texts, compute=compute, report=report)

    def _check_fit(self, settings: Settings) -> None:
        """Refuse a file to fit on where nothing is fitted."""
        retrieval = settings.retrieval
        fits = settings.calibration.fits_priors or retrieval.share > 1 or retrieval.include_fit_texts
        fits = fits or settings.pile.method != "none"
        if self.fit is not None and not fits:
            raise UsageError(
                f"--fit {self.fit}: nothing is fitted on texts with these options",
                hint="leave it out, or use --method z-icl+, --calibrate batch or --set retrieval.share=8",
            )

    def _check_alone(self) -> None:
        """Refuse settings beside a saved classifier, which has its own."""
        allowed = ("corpus", "saved", "lm", "encoder", "offline", "opened", *REMOTE)
        names = [field.name for field in fields(self) if field.name not in allowed]
        given = [name.replace("settings", "set").replace("_", "-") for name in names if _was_given(getattr(self, name))]
        if given:
            raise UsageError(
                f"--with brings its own settings, but --{', --'.join(given)} was given too",
                hint="leave them out, or leave out --with",
            )

    def _load(self, saved: Path) -> ZICLClassifier | DistilledClassifier:
        from zicl.apps.distill.classifier import DistilledClassifier
        from zicl.classifier import ZICLClassifier, load

        lm = self._saved_lm(saved)
        loaded = load(saved, index=self.corpus, lm=lm, encoder=self.encoder, offline=self.offline)
        assert isinstance(loaded, ZICLClassifier | DistilledClassifier)
        return loaded

    def _saved_lm(self, saved: Path) -> str | LanguageModel | None:
        """Return the model to use in place of the saved one; open a saved one behind a server with these options."""
        if self.lm is not None:
            return self.language_model(self.lm, offline=self.offline)
        if not (self.allow_remote_text or parse_server(self.server)):
            return None
        from zicl.persistence import saved_lm

        stored = saved_lm(saved)
        if stored is None:
            raise UsageError(
                f"{saved} asks no language model, and options for one behind a server were given",
                hint="leave them out",
            )
        lm = self.language_model(stored.name, offline=self.offline)
        if not isinstance(lm, str) and lm.identity != stored.identity:
            raise ModelError(
                f"the model at {lm.name} is not the one {saved.name} was saved with",
                hint="its name, its tokenizer or its backend changed: name it with --lm to use it knowingly",
            )
        return lm

    def fit_columns(self, text: str | None, pair: str | None = None) -> dict[str, str | None]:
        """Return the columns of the file that --fit names, for commands that read no other file."""
        if self.fit is None and (text or pair):
            raise UsageError(
                f"--{'text' if text else 'pair'}-column is a column of the file of --fit, and none was given",
                hint="leave it out; the second text of a pair is given with --pair",
            )
        return {"text_column": text or "text", "pair_column": pair}

    def _fit_texts(self, texts: Callable[[], Sequence[Any]] | None, columns: Mapping[str, Any]) -> Sequence[Any] | None:
        if self.fit is None:
            return None if texts is None else texts()
        rows = self.read_fit(columns)
        if empty := sum(row.empty for row in rows):
            print_status(f"without a text, and left out: {empty:,} of {counted(len(rows), 'row')} of {self.fit}")
        return [row.text for row in rows if not row.empty]

    def read_fit(self, columns: Mapping[str, Any]) -> list[InputRow]:
        """Return the rows of the file that --fit names; some may be empty."""
        from zicl.inputs.tables import read_rows

        assert self.fit is not None
        return read_rows(self.fit, **columns, skip_empty=True)

    def _new(self) -> ZICLClassifier:
        from zicl.classifier import ZICLClassifier
        from zicl.lm.base import DEFAULT_LM
        from zicl.retrieve.encoder import DEFAULT_ENCODER

        groups = self.groups()
        if self.one_method:
            self._check_demonstrations(groups)
        self._check_remote(groups)
        if (self.labels or "").isdecimal() and self.synonyms:
            raise UsageError("options that differ from row to row have no synonyms", hint="leave out --synonyms")
        decision = groups.pop("decision", None)
        return ZICLClassifier(
            self.corpus,
            self.named_labels(),
            self.language_model(self.lm or DEFAULT_LM, offline=self.offline),
            method=self.method or self.default_method,
            encoder=self.encoder or DEFAULT_ENCODER,
            seed=self.seed or 0,
            offline=self.offline,
            calibrate=groups.pop("calibration", None),
            **({} if decision is None else decision.model_dump()),
            **groups,
        )

    def named_labels(self) -> Labels:
        """Return the labels of the classifier."""
        assert self.labels is not None
        return self.parsed_labels(self.labels)

    def parsed_labels(self, labels: str) -> Labels:
        """Return the labels that ``--labels`` names, with their synonyms."""
        from zicl.prompt.labels import Labels

        return Labels.of(int(labels)) if labels.isdecimal() else parse_labels(labels, self.synonyms)

    def resolved(self) -> Settings:
        """Return the settings in force, the method's included."""
        from zicl.config import resolve

        counted = self.labels is not None and self.labels.isdecimal()
        return resolve(self.method or self.default_method, self.groups(), counted=counted)

    def searches_synonyms(self) -> bool:
        """Return whether the models have to find synonyms, and may find none; labels are checked on the way."""
        if self.saved is not None or self.labels is None or self.labels.isdecimal():
            return False
        from zicl.prompt.synonyms import needs_search

        settings = self.resolved()
        searches = needs_search(parse_labels(self.labels, self.synonyms))
        return searches and settings.retrieval.k > 0 and settings.labelling.words == "synonyms"

    def groups(self) -> dict[str, Any]:
        """Return the settings that were given, by group; wrong names and values are errors."""
        from zicl.config import get_method, parse_group

        get_method(self.method or self.default_method)
        values = parse_settings(self.settings)
        # Options with their own names come last and win.
        for (group, key), value in self.named_settings().items():
            if value is not None:
                values.setdefault(group, {})[key] = value
        groups = {name: parse_group(name, given) for name, given in values.items()}
        _check_names(groups)
        return groups

    def named_settings(self) -> dict[tuple[str, str], Any]:
        """Return the settings that have options of their own, by group and name."""
        return {
            ("retrieval", "k"): self.k,
            ("scoring", "inference"): self.inference,
            ("scoring", "experts"): self.experts,
            ("calibration", "method"): self.calibrate,
            ("pile", "shares"): None if self.shares is None else parse_shares(self.shares),
            ("prompt", "template"): None if self.template is None else parse_template(self.template),
            ("decision", "none"): self.none,
            ("decision", "multi"): self.multi or None,
            ("decision", "threshold"): None if self.threshold is None else parse_threshold(self.threshold),
        }

    def _check_demonstrations(self, groups: Mapping[str, Any]) -> None:
        """Refuse settings of prompts where no language model is asked, and of demonstrations where none is shown."""
        settings = self.resolved()
        asked = settings.scoring.asks_lm or self.asks_to_learn()
        if not asked and (unused := self._of_prompts(groups)):
            raise UsageError(
                f"{self.method or self.default_method} asks no language model, and {unused[0]} was given",
                hint="leave it out, or ask one: --method z-icl, --experts encoder,direct, or --lm-rows 300",
            )
        shows = "prompt" in settings.scoring.experts or settings.pile.lm_expert == "prompt"
        if shows and (settings.retrieval.k > 0 or settings.pile.lm_expert == "prompt"):
            return
        fields_set = {
            name: groups[name].model_fields_set - {"k"} for name in ("retrieval", "labelling") if name in groups
        }
        if given := [f"{group}.{name}" for group, names in fields_set.items() for name in sorted(names)]:
            raise UsageError(
                f"no demonstrations are shown, and {', '.join(given)} was set",
                hint="leave it out, or show some: another --method, or another --k",
            )

    def _of_prompts(self, groups: Mapping[str, Any]) -> list[str]:
        """Return the options that were given for a prompt."""
        named = {"--inference": self.inference, "--template": self.template, "--lm": self.lm, "--k": self.k}
        unused = [name for name, value in named.items() if value is not None]
        if self.calibrate is not None and self.resolved().scoring.encoder_expert == "encoder":
            unused.append("--calibrate")
        prompt = groups["prompt"].model_fields_set if "prompt" in groups else ()
        return unused + [f"--set prompt.{name}" for name in sorted(prompt)]

    def asks_to_learn(self) -> bool:
        """Return whether the language model is asked about texts to learn from."""
        return self.resolved().pile.lm_rows > 0

    def asks_lm(self) -> bool:
        """Return whether a language model is asked about every text."""
        if self.saved is None:
            return self.resolved().scoring.asks_lm
        from zicl.persistence import saved_lm

        return saved_lm(self.saved) is not None

    def _check_remote(self, groups: Mapping[str, Any]) -> None:
        """Refuse settings of loading for a model behind a server, which is not loaded here."""
        check_loading(self.lm, groups["scoring"].model_fields_set if "scoring" in groups else ())


@dataclass(frozen=True)
class PromptingOptions(ClassifierOptions):
    """The same options for commands that look at prompts: their default is the paper's method."""

    default_method: ClassVar[str] = "z-icl"


@contextmanager
def pile_warnings() -> Iterator[None]:
    """Print warnings about the texts to learn from as status lines."""
    from zicl.exceptions import PileWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PileWarning)
        yield
    for warning in caught:
        if issubclass(warning.category, PileWarning):
            print_status(f"warning: {as_options(str(warning.message))}")
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _was_given(value: object) -> bool:
    """Return whether an option was given; a zero was."""
    return value is not None and value is not False and value != []


def _check_names(groups: Mapping[str, Any]) -> None:
    """Check that the named retriever and template exist."""
    if "retrieval" in groups and "method" in groups["retrieval"].model_fields_set:
        from zicl._util.registry import did_you_mean
        from zicl.retrieve.strategies.base import RETRIEVERS

        if (name := groups["retrieval"].method) not in RETRIEVERS.names():
            raise did_you_mean("retriever", name, RETRIEVERS.names())
    if "prompt" in groups and (template := groups["prompt"].template) != "auto":
        from zicl.prompt.template import Template, get_template

        _ = get_template(template) if isinstance(template, str) else Template(*template)


def with_options(kind: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a dataclass: it is called with ``options`` and its own parameters.

    Typer reads a command's options off its signature, so the signature is built here, once.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters = inspect.signature(command, eval_str=True).parameters.values()
        # Each name is looked up in the module that wrote it: options may extend those of another module.
        hints = get_type_hints(kind, include_extras=True)
        shared = [p.replace(annotation=hints[p.name]) for p in inspect.signature(kind).parameters.values()]

        def run(**values: Any) -> None:
            options = kind(**{p.name: values.pop(p.name) for p in shared})
            try:
                command(options=options, **values)
            finally:
                if isinstance(options, RemoteOptions):
                    options.finish()

        # Few need a server or a cluster: their options come last.
        every = sorted([p for p in parameters if p.name != "options"] + shared, key=lambda p: p.name in (*REMOTE, "on"))
        keywords = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in every]
        cast(Any, run).__signature__ = inspect.Signature(keywords)
        run.__annotations__ = {p.name: p.annotation for p in keywords}
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        return run

    return decorate
