"""A command that takes all options of a dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast, get_type_hints

from zicl.cli._loading import LOADING
from zicl.cli._remote import REMOTE, RemoteChoice


def takes(kind: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
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
                if isinstance(choice, RemoteChoice):
                    choice.finish()

        parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*own, *shared)]
        cast(Any, run).__signature__ = inspect.Signature(parameters)
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        return run

    return decorate
