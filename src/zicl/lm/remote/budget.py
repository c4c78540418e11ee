"""What a run asks for and pays: counted as answers come, and stopped before the limit is passed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Lock

from zicl.exceptions import BudgetError


@dataclass(frozen=True)
class TokenUsage:
    """Requests answered, tokens sent and received, answers remembered, and the cost where prices are known."""

    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    remembered: int = 0
    cost: float | None = None

    def __str__(self) -> str:
        cost = "" if self.cost is None else f", cost {self.cost:.4f}"
        return (
            f"{self.requests:,} requests, {self.tokens_in:,} tokens in, {self.tokens_out:,} out{cost}; "
            f"{self.remembered:,} answers were remembered"
        )


class UsageMeter:
    """Counts, and refuses a request that could pass the limit.

    A request's price is set aside before it is sent: with many under way at once the sum still stays below.
    """

    def __init__(
        self, price_in: float | None = None, price_out: float | None = None, max_cost: float | None = None
    ) -> None:
        self._prices = None if price_in is None else (price_in / 1e6, (price_out or 0.0) / 1e6)
        self._max, self._aside = max_cost, 0.0
        self._spent = TokenUsage(cost=None if price_in is None else 0.0)
        self._lock = Lock()

    @property
    def spent(self) -> TokenUsage:
        """So far."""
        return self._spent

    def price(self, tokens_in: int, tokens_out: int) -> float:
        """What so many tokens cost; 0 where prices are not known."""
        return 0.0 if self._prices is None else tokens_in * self._prices[0] + tokens_out * self._prices[1]

    def set_aside(self, tokens_in: int, tokens_out: int) -> float:
        """Reserve a request's price, or refuse it."""
        price = self.price(tokens_in, tokens_out)
        with self._lock:
            so_far = (self._spent.cost or 0.0) + self._aside
            if self._max is not None and so_far + price > self._max:
                raise BudgetError(
                    f"the next request could pass the limit of {self._max:g}: {self._spent.cost or 0.0:.4f} is spent",
                    hint="every answer so far is kept: the same command goes on, and may spend as much again",
                )
            self._aside += price
        return price

    def answered(self, aside: float, tokens_in: int, tokens_out: int) -> None:
        """An answer came and said what it used."""
        with self._lock:
            self._aside -= aside
            self._add(tokens_in, tokens_out, self.price(tokens_in, tokens_out))

    def refused(self, aside: float) -> None:
        """The server refused: nothing was used."""
        with self._lock:
            self._aside -= aside

    def lost(self, aside: float) -> None:
        """No answer came. It may have been computed and billed, so its price counts as spent."""
        with self._lock:
            self._aside -= aside
            if self._spent.cost is not None:
                self._spent = replace(self._spent, cost=self._spent.cost + aside)

    def remembered(self, count: int) -> None:
        """Answers came from an earlier run."""
        with self._lock:
            self._spent = replace(self._spent, remembered=self._spent.remembered + count)

    def _add(self, tokens_in: int, tokens_out: int, cost: float) -> None:
        old = self._spent
        self._spent = replace(
            old,
            requests=old.requests + 1,
            tokens_in=old.tokens_in + tokens_in,
            tokens_out=old.tokens_out + tokens_out,
            cost=None if old.cost is None else old.cost + cost,
        )
