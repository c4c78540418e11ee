"""Machines of a cluster have to compute with the same versions: the same answer, always."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from zicl import __version__
from zicl.exceptions import ClusterError

_LIBRARIES = (
    *("torch", "transformers", "tokenizers", "sentence-transformers"),
    *("faiss-cpu", "numpy", "pyarrow", "sentencex", "nltk"),
)


def versions() -> dict[str, str]:
    """What decides results in this process."""
    return {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "zicl": __version__,
        **{name: _version(name) for name in _LIBRARIES},
    }


def check_versions(expected: Mapping[str, str]) -> None:
    """An error that names what differs between the machine that gave the command and this one."""
    here = versions()
    other = [f"{name} {value} and {here.get(name)}" for name, value in expected.items() if here.get(name) != value]
    if other:
        raise ClusterError(
            f"the machines of the cluster have other versions: {', '.join(other)}",
            hint="install the same on all of them",
        )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"
