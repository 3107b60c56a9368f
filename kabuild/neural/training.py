"""Whether a model with other kernels trains as its own code does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from textwrap import fill
from typing import Any, Self

from kabuild.builder import Builder
from kabuild.loading.request import Request
from kabuild.model.action import Literal
from kabuild.neural.running import ModelFile, run_tool, told, unreadable
from kabuild.neural.values import MALFORMED, count, figure, text

LEAST = 10
"""The fewest steps that are enough. The comparison ends where the own code's error is above
0.1: ten times as much is allowed to kernels, and one without a gradient is off by the whole."""

_ENDED = re.compile(r"it ended after \d+ of \d+ steps")
_LOSS = re.compile(r"^(?:def loss\(|loss\s*=)", re.MULTILINE)


@dataclass(frozen=True)
class Training:
    """Training steps of a model, beside true ones in double precision.

    Attributes:
        loss, gradient: how far off they are in the worst step, as shares; gradients by norm, of
            the worst parameter; None if infinite. ``eager_``: the same of the model's own code.
        first, last: the true losses.
        wrong: what is too far off, as the comparison found; empty if nothing is.
        known: how many steps could be compared.
    """

    steps: int
    loss: float | None
    gradient: float | None
    eager_loss: float
    eager_gradient: float
    first: float
    last: float
    wrong: str
    known: int

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Self:
        """From JSON. Raises one of MALFORMED for another form."""
        names = ("eager_loss", "eager_gradient", "first", "last")
        figures = {name: figure(facts[name]) for name in names}
        loss, gradient = (
            None if facts[name] is None else figure(facts[name]) for name in ("loss", "gradient")
        )
        wrong, known = told(text(facts["wrong"])), count(facts["known"])
        return cls(count(facts["steps"]), loss, gradient, **figures, wrong=wrong, known=known)

    @property
    def problem(self) -> str:
        """Why it does not pass: what is too far off, or why nothing can be told."""
        return self.wrong or self.untold

    @property
    def untold(self) -> str:
        """Why too little can be told of the model; empty if enough can be."""
        if self.known >= LEAST:
            return ""
        return (
            f"{self.vague}, and {LEAST} steps are needed. Give the file an optimiser(parameters) "
            "that is slower, or a loss that stays away from 0"
        )

    @property
    def vague(self) -> str:
        """From where on nothing can be told of the model; empty if of every step something can."""
        if self.known >= self.steps:
            return ""
        return (
            f"nothing can be told after step {self.known}: the model's own code is more than 0.1 "
            "off there"
        )

    def to_json(self) -> dict[str, Any]:
        """The form for programs."""
        return {**asdict(self), "wrong": self.problem}

    def __str__(self) -> str:
        """For people: two lines, and a third one if something is too far off, or unknown.

        One line where training ended early: the losses and errors are not those of all steps.
        """
        if _ENDED.match(self.wrong):
            return f"training: {self.wrong}"
        text = (
            f"{self.steps} training steps, loss {self.first:.4g} to {self.last:.4g}; "
            "errors as shares of the true values:\n"
            f"loss off by {_share(self.loss)} (own code {self.eager_loss:.1g}), "
            f"gradients by {_share(self.gradient)} (own code {self.eager_gradient:.1g})"
        )
        said = (
            f"too far off: {self.wrong}" if self.wrong else "",
            fill(self.untold or self.vague, 100),
        )
        return "\n".join([text, *filter(None, said)])


def has_loss(text: str) -> bool:
    """Whether a model's file says how it is trained."""
    return bool(_LOSS.search(text))


def training_of(model: ModelFile, reference: bytes, request: Request, builds: Builder) -> Training:
    """Judge training steps of a model by the oracle of the whole.

    Raises KabuildError, and ModelEndedError where it ends instead of taking the steps.
    """
    attrs = {"reference": Literal(reference)}
    facts = run_tool("model_training", model, attrs, request, builds, answering="steps").facts
    try:
        return Training.read(facts)
    except MALFORMED as error:
        raise unreadable(model, error) from None


def _share(value: float | None) -> str:
    return "infinitely much" if value is None else f"{value:.1g}"
