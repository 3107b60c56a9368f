"""How far the logits of a model with other kernels are from the true ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from kabuild.builder import Builder
from kabuild.loading.request import Request
from kabuild.model.action import Literal
from kabuild.neural.running import ModelFile, run_tool, unreadable
from kabuild.neural.values import MALFORMED, count, figure, share, text

_LOGITS = re.compile(r"^LOGITS\s*=", re.MULTILINE)


@dataclass(frozen=True)
class Logits:
    """Of one model, beside the true ones.

    Attributes:
        positions: at which a token is predicted.
        divergence, worst: of Kullback and Leibler in nats, the mean and the largest of a position;
            None where it is infinite.
        agreement: the share of positions with the same likeliest token.
    """

    positions: int
    divergence: float | None
    worst: float | None
    agreement: float

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> Self:
        """From JSON. Raises one of MALFORMED for another form."""
        nats = [value[name] for name in ("divergence", "worst")]
        mean, worst = (None if nat is None else figure(nat) for nat in nats)
        return cls(count(value["positions"]), mean, worst, share(value["agreement"]))

    def to_json(self) -> dict[str, float | None]:
        """The form for programs."""
        return {
            "positions": self.positions,
            "divergence": self.divergence,
            "worst": self.worst,
            "agreement": self.agreement,
        }


@dataclass(frozen=True)
class Likeness:
    """The logits of a model, and of its own code.

    Attributes:
        eager: of the model's own code in its own precision.
        wrong: why the logits are too far off; empty if they are not.
    """

    model: Logits
    eager: Logits
    wrong: str

    def to_json(self) -> dict[str, Any]:
        """The form for programs."""
        return {
            "model": self.model.to_json(),
            "eager": self.eager.to_json(),
            "wrong": self.wrong,
        }

    def __str__(self) -> str:
        """For people: two lines, and a third one if they are too far off."""
        text = (
            f"logits at {self.model.positions} positions: divergence {_nats(self.model)} "
            f"(own code {_nats(self.eager)})\n"
            f"the likeliest token agrees in {self.model.agreement:.2%}"
        )
        return f"{text}\ntoo far off: {self.wrong}" if self.wrong else text


def has_logits(text: str) -> bool:
    """Whether a model's file says which of its results are logits."""
    return bool(_LOGITS.search(text))


def likeness_of(model: ModelFile, reference: bytes, request: Request, builds: Builder) -> Likeness:
    """Judge the logits of a model by the oracle of the whole.

    Raises KabuildError, and ModelEndedError where it ends instead of giving any.
    """
    attrs = {"reference": Literal(reference)}
    facts = run_tool("model_likelihood", model, attrs, request, builds, answering="answers").facts
    try:
        logits = Logits.read(facts["model"]), Logits.read(facts["eager"])
        return Likeness(*logits, text(facts["wrong"]))
    except MALFORMED as error:
        raise unreadable(model, error) from None


def _nats(logits: Logits) -> str:
    return "infinite" if logits.divergence is None else f"{logits.divergence:.2g} nats"
