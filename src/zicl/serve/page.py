"""The page: one file, served with a policy that allows its own script and style and nothing else."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from html.parser import HTMLParser
from importlib.resources import files

from starlette.responses import Response

_POLICY = (
    "default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
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
    html = files("zicl.serve").joinpath("page/index.html").read_bytes()
    return Page(html, policy(html.decode("utf-8")))


def policy(html: str) -> str:
    """The policy for a page: each of its inline scripts and styles is named by its hash.

    >>> policy("<style>p {color: red}</style>").split("; ")[1:3]
    ["script-src 'none'", "style-src 'sha256-qBy9ErFlu/Xp8PeV8kGFFObuAwqXQwJkg+NvSChoaWY='"]
    """
    blocks = _Blocks()
    blocks.feed(html)
    blocks.close()
    sources = {tag: " ".join(_hash(text) for text in texts) or "'none'" for tag, texts in blocks.found.items()}
    return _POLICY.format(**sources)


def _hash(text: str) -> str:
    # A browser reads line breaks of any kind as \n before it hashes.
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    return f"'sha256-{base64.b64encode(hashlib.sha256(plain.encode()).digest()).decode()}'"


class _Blocks(HTMLParser):
    """Collects what stands between <script> and </script>, <style> and </style>."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.found: dict[str, list[str]] = {"script": [], "style": []}
        self._inside: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self.found:
            self._inside = tag
            self.found[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside is not None:
            self.found[self._inside][-1] += data
