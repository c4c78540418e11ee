"""Machines of a cluster have to compute with the same versions: the same answer, always."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from zicl import __version__
from zicl._util.versions import versions
from zicl.exceptions import ClusterError

_LIBRARIES = (
    *("torch", "transformers", "tokenizers", "sentence-transformers"),
    *("faiss-cpu", "numpy", "pyarrow", "sentencex", "nltk"),
)


def decisive() -> dict[str, str]:
    """The versions that decide results in this process."""
    return {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "zicl": __version__,
        **versions(_LIBRARIES),
    }


def check_versions(expected: Mapping[str, str]) -> None:
    """An error that names what differs between the machine that gave the command and this one."""
    here = decisive()
    other = [f"{name} {value} and {here.get(name)}" for name, value in expected.items() if here.get(name) != value]
    if other:
        raise ClusterError(
            f"the machines of the cluster have other versions: {', '.join(other)}",
            hint="install the same on all of them",
        )
