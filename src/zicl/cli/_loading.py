"""The options for a language model that is loaded here: where it lies, and in which numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from zicl.cli._remote import RemoteChoice
from zicl.exceptions import UsageError

if TYPE_CHECKING:
    from zicl.lm.base import LanguageModel


@dataclass(frozen=True)
class LoadingChoice(RemoteChoice):
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
        from zicl.lm.remote.address import is_remote

        if is_remote(spec) and self.loading():
            raise UsageError(
                f"--{next(iter(self.loading()))} is for a model that is loaded here, and {spec} is behind a server",
                hint="leave it out: the server decides where its model is and in which numbers",
            )


# The names of the options.
LOADING = ("device", "dtype")
