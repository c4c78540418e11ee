"""Names in a request: of methods, templates and retrievers. A wrong one is refused with the part it stands in."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from zicl._util.registry import did_you_mean
from zicl.apps.serve.problems import INVALID, RefusedError
from zicl.config import METHODS
from zicl.exceptions import UsageError
from zicl.prompt.template import TEMPLATES, Template
from zicl.retrieve.strategies.base import RETRIEVERS

_LINES = "for example ['Review: {input}', 'Sentiment: {label}']"


def templates() -> dict[str, Template]:
    """Those a server takes: of single texts."""
    return {name: template for name, template in TEMPLATES.items() if not template.two_fields}


def check_method(name: str) -> None:
    """A method of classification."""
    _check("method", name, METHODS, "one of the methods that /v1/info lists")


def check_template(given: str | tuple[str, str] | None) -> None:
    """A template of single texts, by name or by its lines; "auto" is picked by the labels."""
    if isinstance(given, tuple):
        template = _tried(lambda: Template(*given))
        if template.two_fields:
            raise _of_pairs()
    elif given in TEMPLATES and given not in templates():
        raise _of_pairs()
    elif given not in (None, "auto"):
        _check("template", str(given), templates(), "one of the templates that /v1/info lists, or two lines")


def check_retriever(name: str) -> None:
    """A way to find sentences; a method of classification has one, which is then named."""
    known = RETRIEVERS.names()
    if name in METHODS and name not in known:
        retrieval = METHODS[name].retrieval
        own = f"retrieves as {retrieval.method!r} does" if retrieval.k else "retrieves nothing"
        raise RefusedError(
            INVALID,
            f"{name!r} is a method of /v1/classify, and no retrieval method",
            expected="one of the retrievals that /v1/info lists",
            hint=f"{name!r} {own}. Known: {', '.join(known)}",
            field="method",
        )
    _check("retrieval method", name, known, "one of the retrievals that /v1/info lists", field="method")


def _check(kind: str, name: str, known: Iterable[str], expected: str, field: str | None = None) -> None:
    if name not in known:
        error = did_you_mean(kind, name, known)
        raise RefusedError(INVALID, error.message, expected=expected, hint=error.hint, field=field or kind)


def _tried(make: Callable[[], Template]) -> Template:
    try:
        return make()
    except UsageError as error:
        expected = "two lines, one with {input} and one with {label}"
        raise RefusedError(INVALID, error.message, expected=expected, hint=_LINES, field="template") from error


def _of_pairs() -> RefusedError:
    return RefusedError(
        INVALID,
        "this template is for pairs of texts, and the server takes single ones",
        expected="a template with {input}",
        hint=f"known: {', '.join(templates())}; or two lines, {_LINES}",
        field="template",
    )
