"""The versions of what results depend on."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version


def versions(libraries: Iterable[str]) -> dict[str, str]:
    """The installed version of each library, ``unknown`` where there is none."""
    return {name: _version(name) for name in libraries}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
