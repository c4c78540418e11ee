"""Scripts and styles inside a page: how a content security policy names them."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from typing import Any


def csp_hash(text: str) -> str:
    """The source that allows an inline script or style, and no other.

    >>> csp_hash("p {color: red}")
    "'sha256-qBy9ErFlu/Xp8PeV8kGFFObuAwqXQwJkg+NvSChoaWY='"
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# -- Text that stays text on the page: in HTML, in the embedded JSON, and in the names of its parts.


# In a script element "</script" and "<!--" would end or change it; the rest is for readers that are less strict.
_JSON = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def escape(text: str) -> str:
    """Text for an element or an attribute in double quotes.

    >>> escape('</script><img onerror="x">')
    '&lt;/script&gt;&lt;img onerror=&quot;x&quot;&gt;'
    """
    return html.escape(text)


def json_in_html(value: Any) -> str:
    r"""JSON for a script element of the type application/json.

    >>> json_in_html({"text": "</script>"})
    '{"text":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Half of a pair of surrogates, as found in scraped text, cannot be written as UTF-8.
    text = text.encode("utf-8", "replace").decode("utf-8")
    return re.sub("[<>&\u2028\u2029]", lambda found: _JSON[found[0]], text)


def slug(text: str) -> str:
    """A name for an element.

    >>> slug("study-Corpus size")
    'study-corpus-size'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
