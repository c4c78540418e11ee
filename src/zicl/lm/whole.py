"""Models all of whose weights were there."""

from __future__ import annotations

from typing import Any

from zicl.exceptions import ModelError


def whole(spec: str, model: Any, info: dict[str, Any]) -> Any:
    """The model, if all of its weights were there: missing ones would be random numbers, others at every start."""
    if missing := sorted(info["missing_keys"]):
        raise ModelError(
            f"{spec} has no weights for {', '.join(missing[:3])}{' and others' if len(missing) > 3 else ''}",
            hint="it was saved for another purpose, such as classification: use the causal language model itself",
        )
    return model
