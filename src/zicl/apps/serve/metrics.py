"""What the server counts, as Prometheus text; nothing here depends on what a text says."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)


class Metrics:
    """The counters of one server, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter("zicl_requests", "Requests answered.", ["route", "status"], registry=self._registry)
        self.seconds = Histogram(
            "zicl_request_seconds", "Time to answer.", ["route"], buckets=_SECONDS, registry=self._registry
        )
        self.waiting = Gauge("zicl_queue_waiting", "Texts that wait.", registry=self._registry)
        self.refused = Counter("zicl_queue_refused", "Requests refused by a full queue.", registry=self._registry)
        self.computed = Counter("zicl_computed", "Answers computed.", registry=self._registry)
        self.cached = Counter("zicl_cached", "Answers that were known already.", registry=self._registry)
        self.joined = Counter("zicl_joined", "Answers shared with an equal request.", registry=self._registry)
        self.groups = Histogram(
            "zicl_group_size", "Texts computed together.", buckets=(1, 2, 4, 8, 16), registry=self._registry
        )
        self.ready = Gauge("zicl_ready", "Whether the models are loaded.", registry=self._registry)

    def text(self) -> bytes:
        """All of them, to be read by Prometheus."""
        return generate_latest(self._registry)
