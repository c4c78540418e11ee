"""Build the page as one HTML file whose content security policy allows its script and style and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from string import Template

from starlette.responses import Response

from zicl._util.html import csp_hash

# Joined to one script in this order: each uses only what is before it when it is loaded.
_SCRIPTS = (
    "tools",
    "server",
    "problems",
    "settings",
    "learned",
    "labels",
    "examples",
    "texts",
    "bars",
    "prompt",
    "experts",
    "reasons",
    "demos",
    "map",
    "table",
    "sets",
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
        """Return the page as an answer."""
        headers = {"Content-Security-Policy": self.policy}
        return Response(self.html, status, headers, "text/html; charset=utf-8")


def load_page() -> Page:
    """Build the page from the package's files."""
    style, script = _read("page.css"), "\n".join(_read(f"{name}.js") for name in _SCRIPTS)
    html = Template(_read("index.html")).substitute(style=style, script=script)
    # One style, one script, requests to this server; scripts cannot turn strings into HTML (trusted types).
    policy = (
        f"default-src 'none'; script-src {csp_hash(script)}; style-src {csp_hash(style)}; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return Page(html.encode("utf-8"), policy)


def _read(name: str) -> str:
    return files("zicl.apps.serve").joinpath("page", name).read_text(encoding="utf-8")
