"""The options for a language model behind a server, and the model they describe."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import typer

from zicl.cli.console import print_status
from zicl.exceptions import UsageError

if TYPE_CHECKING:
    from zicl.lm.base import LanguageModel

TokenizerOption = Annotated[
    str | None,
    typer.Option(
        "--tokenizer", help="The tokenizer of a model behind a server: catalog name, hf:ID, folder. [its own]"
    ),
]


@dataclass(frozen=True)
class RemoteOptions:
    """What the options for a model behind a server say."""

    # Whether a server's answers of earlier runs are used.
    recall: ClassVar[bool] = True

    allow_remote_text: Annotated[
        bool, typer.Option("--allow-remote-text", help="Corpus sentences and texts may be sent to the model's server.")
    ] = False
    tokenizer: TokenizerOption = None
    context: Annotated[
        int | None, typer.Option("--context", help="Tokens of the longest prompt, for servers that do not tell.")
    ] = None
    requests: Annotated[int | None, typer.Option("--requests", help="Requests to a server at once. [8]")] = None
    price_in: Annotated[
        float | None, typer.Option("--price-in", help="Price of a million tokens sent to a server.")
    ] = None
    price_out: Annotated[
        float | None,
        typer.Option("--price-out", help="Price of a million tokens it writes; one a request is asked for."),
    ] = None
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", help="Stop before this command spends more; it goes on later.")
    ] = None
    opened: list[Any] = field(init=False, default_factory=list, repr=False, compare=False)

    def language_model(self, spec: str, *, offline: bool) -> str | LanguageModel:
        """The model at an address, opened as the options say; any other name as it is."""
        from zicl.lm.remote.settings import is_remote

        # By identity: a limit of 0 is no limit left out.
        given = {name: value for name in REMOTE if (value := getattr(self, name)) is not None and value is not False}
        if not is_remote(spec):
            if given:
                raise UsageError(
                    f"--{next(iter(given)).replace('_', '-')} is for a model behind a server, and {spec} is none",
                    hint="leave it out, or name one: --lm http://HOST:PORT/v1#MODEL",
                )
            return spec
        from pydantic import ValidationError

        from zicl._util.validation import config_error
        from zicl.lm.load import load_lm
        from zicl.lm.remote.settings import RemoteSettings

        allow = given.pop("allow_remote_text", False)
        try:
            settings = RemoteSettings(allow_text=allow, recall=self.recall, **given)
        except ValidationError as error:
            raise config_error(error, RemoteSettings) from error
        lm = load_lm(spec, offline=offline, remote=settings)
        self.opened.append(lm)
        return lm

    def but(self, **changes: Any) -> Self:
        """The same choice with other options; what it opens is closed with what this one opened."""
        changed = replace(self, **changes)
        object.__setattr__(changed, "opened", self.opened)
        return changed

    def finish(self) -> None:
        """Say what the servers were asked and paid for, and close the connections."""
        for lm in self.opened:
            print_status(f"{lm.name}: {lm.spent}")
            lm.close()
        self.opened.clear()


# The names of the options.
REMOTE = tuple(option.name for option in fields(RemoteOptions) if option.init)


# -- The options for a language model that is loaded here: where it lies, and in which numbers.


@dataclass(frozen=True)
class LoadingOptions(RemoteOptions):
    """What the options for loading a model say."""

    device: Annotated[
        str | None,
        typer.Option("--device", help="auto, cpu, cuda, cuda:1, mps; or spread over several: map:auto. [auto]"),
    ] = None
    dtype: Annotated[
        str | None, typer.Option("--dtype", help="The weights' numbers: float32, bfloat16, float16, int8. [float32]")
    ] = None

    def loading(self) -> dict[str, str]:
        """The settings that were given, by the names they have in ``scoring``; wrong values are errors."""
        from zicl.lm.devices import Placement

        given: dict[str, str | None] = {name: getattr(self, name) for name in LOADING}
        found = {name: value for name, value in given.items() if value is not None}
        Placement(**found)
        return found

    def scoring(self) -> dict[str, dict[str, str]]:
        """The same as a table of an experiment; none where nothing was given."""
        found = self.loading()
        return {"scoring": found} if found else {}

    def language_model(self, spec: str, *, offline: bool) -> str | LanguageModel:
        """The model at an address, opened as the options say; any other name as it is."""
        self.check_loading(spec)
        return super().language_model(spec, offline=offline)

    def check_loading(self, spec: str) -> None:
        """A model behind a server takes none of these options."""
        from zicl.lm.remote.settings import is_remote

        if is_remote(spec) and self.loading():
            raise UsageError(
                f"--{next(iter(self.loading()))} is for a model that is loaded here, and {spec} is behind a server",
                hint="leave it out: the server decides where its model is and in which numbers",
            )


# The names of the options.
LOADING = ("device", "dtype")
