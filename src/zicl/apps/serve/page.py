"""The page, put together as one file; its policy allows its own script and style and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from string import Template

from starlette.responses import Response

from zicl._util.html import csp_hash

# One script in the end, in this order: what is begun last uses all before it.
_SCRIPTS = (
    "tools",
    "server",
    "problems",
    "settings",
    "labels",
    "texts",
    "bars",
    "prompt",
    "reasons",
    "demos",
    "csv",
    "table",
    "batch",
    "run",
    "start",
)


@dataclass(frozen=True)
class Page:
    """The page and its content security policy."""

    html: bytes
    policy: str

    def response(self, status: int = 200) -> Response:
        """The page as an answer."""
        headers = {"Content-Security-Policy": self.policy}
        return Response(self.html, status, headers, "text/html; charset=utf-8")


def load_page() -> Page:
    """The page that comes with the package."""
    style, script = _read("page.css"), "\n".join(_read(f"{name}.js") for name in _SCRIPTS)
    html = Template(_read("index.html")).substitute(style=style, script=script)
    return Page(html.encode("utf-8"), policy(style, script))


def policy(style: str, script: str) -> str:
    """A policy for one style, one script and questions to the own server; no script may make HTML of words."""
    return (
        f"default-src 'none'; script-src {csp_hash(script)}; style-src {csp_hash(style)}; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _read(name: str) -> str:
    return files("zicl.apps.serve").joinpath("page", name).read_text(encoding="utf-8")
