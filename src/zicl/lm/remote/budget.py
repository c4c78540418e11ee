"""Count the tokens and the cost of a run, and stop it before the limit is exceeded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Lock

from zicl.exceptions import BudgetError


@dataclass(frozen=True)
class TokenUsage:
    """Answered requests, tokens sent and received, answers from the cache, and the cost if prices are known."""

    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cached: int = 0
    cost: float | None = None

    def __str__(self) -> str:
        cost = "" if self.cost is None else f", cost {self.cost:.4f}"
        return (
            f"{self.requests:,} requests, {self.tokens_in:,} tokens in, {self.tokens_out:,} out{cost}; "
            f"{self.cached:,} answers from the cache"
        )


class UsageMeter:
    """Count usage, and refuse a request that could exceed the limit.

    The price of a request is reserved before it is sent, so that the limit holds with many requests in flight.
    """

    def __init__(
        self, price_in: float | None = None, price_out: float | None = None, max_cost: float | None = None
    ) -> None:
        self._prices = None if price_in is None else (price_in / 1e6, (price_out or 0.0) / 1e6)
        self._max_cost, self._reserved = max_cost, 0.0
        self._usage = TokenUsage(cost=None if price_in is None else 0.0)
        self._lock = Lock()

    @property
    def usage(self) -> TokenUsage:
        """The usage so far."""
        return self._usage

    def price(self, tokens_in: int, tokens_out: int) -> float:
        """Return the price of these tokens; 0 if prices are not known."""
        return 0.0 if self._prices is None else tokens_in * self._prices[0] + tokens_out * self._prices[1]

    def reserve(self, tokens_in: int, tokens_out: int) -> float:
        """Reserve the price of a request and return it, or refuse the request."""
        price = self.price(tokens_in, tokens_out)
        with self._lock:
            spent = self._usage.cost or 0.0
            if self._max_cost is not None and spent + self._reserved + price > self._max_cost:
                raise BudgetError(
                    f"the next request could exceed the limit of {self._max_cost:g}: {spent:.4f} is spent",
                    hint="run the same command again to continue: all answers are kept, and it may spend as much again",
                )
            self._reserved += price
        return price

    def answered(self, reserved: float, tokens_in: int, tokens_out: int) -> None:
        """Count an answer and the usage that it reports."""
        with self._lock:
            self._reserved -= reserved
            old = self._usage
            self._usage = replace(
                old,
                requests=old.requests + 1,
                tokens_in=old.tokens_in + tokens_in,
                tokens_out=old.tokens_out + tokens_out,
                cost=None if old.cost is None else old.cost + self.price(tokens_in, tokens_out),
            )

    def refused(self, reserved: float) -> None:
        """Release the reservation of a request that the server refused: it costs nothing."""
        with self._lock:
            self._reserved -= reserved

    def lost(self, reserved: float) -> None:
        """Count a request without an answer as paid: it may have been computed and billed."""
        with self._lock:
            self._reserved -= reserved
            if self._usage.cost is not None:
                self._usage = replace(self._usage, cost=self._usage.cost + reserved)

    def from_cache(self, count: int) -> None:
        """Count answers of an earlier run."""
        with self._lock:
            self._usage = replace(self._usage, cached=self._usage.cached + count)
