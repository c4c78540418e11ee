"""An extension of mkdocstrings: ``name : what it is`` under Parameters describes; types are in the signature."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_SECTION = re.compile(r"(?<=Parameters\n----------\n).*?(?=\n\n|\Z)", re.DOTALL)
_ENTRY = re.compile(r"^(\w[\w, ]*?) : (.*)$", re.MULTILINE)


class Descriptions(Extension):
    """Give each parameter a line of its own, with what it is below."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite a docstring before it is parsed."""
        if obj.docstring is not None:
            obj.docstring.value = _SECTION.sub(lambda part: _ENTRY.sub(r"\1\n    \2", part[0]), obj.docstring.value)
