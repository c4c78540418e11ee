"""What every worker does before it begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from zicl._util.offline import go_offline
from zicl._util.threads import use_threads
from zicl.apps.cluster.same import check_versions, decisive


@dataclass(frozen=True)
class Conditions:
    """Threads, network and versions of a worker: made where the command was given, kept where it computes."""

    threads: int
    offline: bool = False
    versions: Mapping[str, str] = field(default_factory=decisive)

    def keep(self) -> None:
        """Set this process up; results are the same, byte for byte, only at equal numbers of threads."""
        if self.offline:
            go_offline()
        check_versions(self.versions)
        use_threads(self.threads)
