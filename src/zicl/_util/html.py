"""Put text, JSON, scripts and styles into an HTML page safely."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from typing import Any

# In a script element "</script" and "<!--" would end or change it; the others are for less strict parsers.
_JSON_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def escape(text: str) -> str:
    """Return text for an element or for an attribute in double quotes.

    >>> escape('</script><img onerror="x">')
    '&lt;/script&gt;&lt;img onerror=&quot;x&quot;&gt;'
    """
    return html.escape(text)


def json_in_html(value: Any) -> str:
    r"""Return JSON for a script element of the type application/json.

    >>> json_in_html({"text": "</script>"})
    '{"text":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # A lone surrogate, as found in scraped text, cannot be encoded as UTF-8.
    text = text.encode("utf-8", "replace").decode("utf-8")
    return re.sub("[<>&\u2028\u2029]", lambda match: _JSON_ESCAPES[match[0]], text)


def slug(text: str) -> str:
    """Return an element's id made from a title.

    >>> slug("study-Corpus size")
    'study-corpus-size'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def csp_hash(text: str) -> str:
    """Return the source expression with which a content security policy allows this inline script or style.

    >>> csp_hash("p {color: red}")
    "'sha256-qBy9ErFlu/Xp8PeV8kGFFObuAwqXQwJkg+NvSChoaWY='"
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
