"""The options for a language model behind a server, and the model they describe."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import typer

from zicl.cli.console import print_status
from zicl.cli.help import MODEL
from zicl.exceptions import UsageError

if TYPE_CHECKING:
    from zicl.lm.base import LanguageModel

# The fields of these options, for those who copy or exclude them.
REMOTE = ("allow_remote_text", "server")
# What --server sets, of ``zicl.lm.remote.settings.RemoteSettings``.
_SERVER_KEYS = ("tokenizer", "context", "requests", "timeout", "attempts", "price_in", "price_out", "max_cost")
_NEXT_KEY = rf",(?=(?:{'|'.join(_SERVER_KEYS)})=)"


def parse_server(entries: list[str] | None) -> dict[str, str]:
    """Return the settings of a server from entries KEY=VALUE, which may be joined by commas.

    >>> parse_server(["requests=16,max_cost=2.5", "tokenizer=hf:org/model"])
    {'requests': '16', 'max_cost': '2.5', 'tokenizer': 'hf:org/model'}
    """
    given: dict[str, str] = {}
    for entry in (part for joined in entries or [] for part in re.split(_NEXT_KEY, joined)):
        key, equals, value = entry.partition("=")
        if not equals or not value or key not in _SERVER_KEYS:
            raise UsageError(f"--server {entry!r}: expected KEY=VALUE", hint=f"keys are: {', '.join(_SERVER_KEYS)}")
        given[key] = value
    return given


@dataclass(frozen=True)
class RemoteOptions:
    """The options for a model behind a server."""

    # Whether answers that a server gave to earlier runs are reused.
    recall: ClassVar[bool] = True

    allow_remote_text: Annotated[
        bool,
        typer.Option(
            "--allow-remote-text",
            help="Corpus sentences and texts may be sent to the model's server.",
            rich_help_panel=MODEL,
        ),
    ] = False
    server: Annotated[
        list[str] | None,
        typer.Option(
            "--server",
            help="How to use a model's server, as KEY=VALUE: tokenizer (catalog name, hf:ID, folder), context (tokens),"
            " requests (in parallel), timeout (seconds), attempts, price_in, price_out (per million tokens),"
            " max_cost (stop before spending more).",
            rich_help_panel=MODEL,
        ),
    ] = None
    opened: list[Any] = field(init=False, default_factory=list, repr=False, compare=False)

    def language_model(self, spec: str, *, offline: bool) -> str | LanguageModel:
        """Open the model at an address as the options say; return any other name as it is."""
        from zicl.lm.remote.settings import is_remote

        given = parse_server(self.server)
        if not is_remote(spec):
            if given or self.allow_remote_text:
                option = "--server" if given else "--allow-remote-text"
                raise UsageError(
                    f"{option} is for a model behind a server, and {spec} is none",
                    hint="leave it out, or name one: --lm http://HOST:PORT/v1#MODEL",
                )
            return spec
        from pydantic import ValidationError

        from zicl._util.validation import config_error
        from zicl.lm.load import load_lm
        from zicl.lm.remote.settings import RemoteSettings

        values: dict[str, Any] = {"allow_text": self.allow_remote_text, "recall": self.recall, **given}
        try:
            settings = RemoteSettings(**values)
        except ValidationError as error:
            raise config_error(error, RemoteSettings, "--server: ") from error
        lm = load_lm(spec, offline=offline, remote=settings)
        self.opened.append(lm)
        return lm

    def but(self, **changes: Any) -> Self:
        """Return the same options with changes; what they open is closed together."""
        changed = replace(self, **changes)
        object.__setattr__(changed, "opened", self.opened)
        return changed

    def finish(self) -> None:
        """Print the requests and the cost of the servers, and close the connections."""
        for lm in self.opened:
            print_status(f"{lm.name}: {lm.usage}")
            lm.close()
        self.opened.clear()


def check_loading(lm: str | None, scoring: Any) -> None:
    """Refuse settings of loading (``scoring`` holds their names) for a model behind a server."""
    from zicl.lm.remote.settings import is_remote

    given = sorted({"device", "dtype", "batch_size"} & set(scoring))
    if given and lm is not None and is_remote(lm):
        raise UsageError(
            f"--set scoring.{given[0]} is for a model that is loaded here, and {lm} is behind a server",
            hint="leave it out: the server decides where its model runs and in which precision",
        )
