"""Check the JSON of a folder against a schema: corpora, indexes and saved classifiers are passed on by strangers.

Every error names the file, the field, what is wrong with it and what was expected.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, FailFast, Field, ValidationError

from zicl._util.validation import config_error
from zicl.exceptions import ZICLError

# Numbers of rows, documents and bytes: larger ones would not fit the arrays that they are compared with.
Count = Annotated[int, Field(ge=0, le=1 << 53)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
# One error will do: a stranger's list may have millions of wrong entries.
Entries = Annotated[list[T], FailFast()]


class Strict(BaseModel):
    """A part of a schema: no value is converted. Keys that it does not name are for people, and no code reads them."""

    model_config = ConfigDict(strict=True, frozen=True)


class FileEntry(Strict):
    """The size and the hash of a file."""

    bytes: Count
    sha256: Sha256


def check_schema(value: object, model: type[M], path: Path, error: type[ZICLError], hint: str) -> M:
    """Return what ``path`` holds as a model, or raise an ``error`` that names everything that does not fit."""
    if not isinstance(value, dict):
        raise error(f"{path} is damaged: it holds {type(value).__name__}, not an object with keys", hint=hint)
    try:
        return model.model_validate(value)
    except ValidationError as cause:
        raise error(f"{path} is damaged: {config_error(cause, model).message}", hint=hint) from cause
