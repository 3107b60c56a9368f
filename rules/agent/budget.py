"""The budgets of an agent, with their units and plausible ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kabuild.rule import AttributeProblem


@dataclass(frozen=True)
class Budget:
    """The range of one number in a declaration.

    A number beyond ``most`` was probably meant in another unit. Limits do not depend on this
    machine, since a declaration must load everywhere.

    Attributes:
        unit: of the number.
        least, most: the range, both included.
        example: shown to users who assumed another unit.
    """

    unit: str
    least: float
    most: int
    example: str

    def check(self, value: float) -> None:
        """Refuse an implausible number. Raises AttributeProblem."""
        if not self.least <= value <= self.most:
            raise AttributeProblem(
                f"found {value}, expected {self.least:g} to {self.most:_} {self.unit}",
                hint=f"it is in {self.unit}: {self.example}",
            )


BUDGETS: Mapping[str, Budget] = {
    "seconds": Budget("seconds", 0.1, 7 * 86_400, "3600 for an hour; a week is the most"),
    "turns": Budget("turns", 0, 1_000_000, "0 for any number of them"),
    "tokens": Budget("tokens", 0, 10_000_000_000, "3_000_000 for 3 million, 0 for any number"),
    "dollars": Budget("dollars", 0, 100_000, "20.0 for 20 dollars, 0 for any amount"),
    "memory": Budget("MiB", 64, 1_048_576, "8192 for 8 GiB; 1 TiB is the most"),
}
"""By attribute. The most turns are one a second for a week."""
