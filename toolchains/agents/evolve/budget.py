"""The budgets of a search, and their use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Prices:
    """Dollars for a million tokens; 0 if not given."""

    sent: float = 0.0
    cached: float = 0.0
    received: float = 0.0


@dataclass(frozen=True)
class Cost:
    """The tokens of one answer. ``sent`` includes tokens in the provider's cache (``cached``)."""

    sent: int = 0
    cached: int = 0
    received: int = 0

    def __add__(self, other: Cost) -> Cost:
        """Tokens sent and received."""
        cached, received = self.cached + other.cached, self.received + other.received
        return Cost(self.sent + other.sent, cached, received)

    def dollars(self, prices: Prices) -> float:
        """Dollars at these prices, with the price of cached tokens if there is one."""
        cached = prices.cached or prices.sent
        paid = (self.sent - self.cached) * prices.sent + self.cached * cached
        return (paid + self.received * prices.received) / 1e6


@dataclass(frozen=True)
class Limits:
    """Limits; 0 means no limit. ``dollars`` needs prices."""

    turns: int = 0
    tokens: int = 0
    dollars: float = 0.0
    seconds: float = 0.0


@dataclass
class Budget:
    """Counts turns (answers of the model) and their costs over all runs of a search.

    A turn is reserved before its question is sent, so parallel turns never exceed their number.
    Tokens and dollars are known only afterwards, so parallel answers may exceed those.
    """

    limits: Limits
    prices: Prices
    turns: int = 0
    answered: int = 0
    cost: Cost = Cost()

    def exceeded(self, seconds: float) -> str:
        """The budget that is used up, for people; empty if none is."""
        used = (
            ("turns", float(self.turns), float(self.limits.turns)),
            ("tokens", float(self.tokens), float(self.limits.tokens)),
            ("dollars", self.dollars, self.limits.dollars),
            ("seconds", seconds, self.limits.seconds),
        )
        for name, now, most in used:
            if most and now >= most:
                return f"all {most:g} {name} are used up"
        return ""

    def reserve(self) -> None:
        """Count a turn that is about to begin, or that an earlier run has used."""
        self.turns += 1

    def release(self) -> None:
        """Stop counting it: there was no answer."""
        self.turns -= 1

    def pay(self, cost: Cost) -> None:
        """Count the tokens of an answer."""
        self.answered += 1
        self.cost += cost

    @property
    def tokens(self) -> int:
        """Sent and received."""
        return self.cost.sent + self.cost.received

    @property
    def dollars(self) -> float:
        """By the prices."""
        return self.cost.dollars(self.prices)

    def usage(self) -> dict[str, float | int]:
        """The usage in the format of a session; dollars only if there are prices."""
        usage: dict[str, float | int] = {
            "turns": self.answered,
            "input_tokens": self.cost.sent,
            "output_tokens": self.cost.received,
            "cached_tokens": self.cost.cached,
        }
        if self.prices != Prices():
            usage["dollars"] = round(self.dollars, 6)
        return usage
