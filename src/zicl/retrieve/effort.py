"""How far a search looks; what is not given is the index's own."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Effort:
    """``nprobe``: lists (ivf kinds). ``refine``: candidates a result (re-ranked kinds). ``ef``: candidates (hnsw)."""

    nprobe: int | None = None
    refine: int | None = None
    ef: int | None = None

    @classmethod
    def of(cls, manifest: dict[str, Any]) -> Effort:
        """What was picked for an index, if anything was."""
        return cls(**manifest.get("search", {}))

    def kept(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """A manifest with this effort as the picked one; it stays as it is where nothing is given."""
        rest = {name: value for name, value in manifest.items() if name != "search"}
        return {**rest, "search": self.given()} if self.given() else rest

    def given(self) -> dict[str, int]:
        """What is given, by name.

        >>> Effort(nprobe=8).given()
        {'nprobe': 8}
        """
        return {name: value for name, value in asdict(self).items() if value is not None}

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.given().items())


USUAL = Effort()
