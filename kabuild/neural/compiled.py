"""A model after ``torch.compile``: its kernels, and its speedup over eager."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from kabuild.base.errors import LoadError
from kabuild.builder import Builder
from kabuild.loading.request import Request
from kabuild.model.speedup import Speedup
from kabuild.neural.running import ModelFile, run_tool, unreadable
from kabuild.neural.values import MALFORMED, count, number, share, text
from kabuild.report.table import text_table
from kabuild.report.times import nanoseconds

SCHEMA = 1
_MOST_KERNELS = 20_000
_LONGEST = 44


@dataclass(frozen=True)
class Kernel:
    """A kernel of a compiled model; figures are of one call of the model.

    ``fused`` are those that Inductor wrote, others are operators of PyTorch's.
    """

    name: str
    fused: bool
    calls: int
    seconds: float
    share: float

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> Self:
        """From JSON. Raises one of MALFORMED for another form."""
        figures = (number(value["seconds"]), share(value["share"]))
        calls = count(value["calls"])
        return cls(text(value["name"]), value["fused"] is True, calls, *figures)


@dataclass(frozen=True)
class Compiled:
    """A model after ``torch.compile``.

    Attributes:
        absent: why there are no figures; empty if there are.
        speedup: over the model's own code, eager.
        seconds: of a call.
        eager: seconds of a call of the model's own code, in turns with it; 0 if unknown. Another
            process than the profile's has measured them.
        facts: all of it, as it was written.
    """

    absent: str
    speedup: Speedup | None = None
    seconds: float = 0.0
    eager: float = 0.0
    kernels: tuple[Kernel, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Self:
        """From JSON. Raises one of MALFORMED for another form."""
        if facts["schema"] != SCHEMA:
            raise ValueError("another schema")
        if text(facts["absent"]):
            return cls(facts["absent"], facts=facts)
        speedup, taken = Speedup.read(facts), number(facts["seconds"])
        if speedup is None or len(facts["kernels"]) > _MOST_KERNELS:
            raise ValueError("no figures")
        eager = number(facts.get("eager_seconds", 0.0))
        return cls("", speedup, taken, eager, tuple(map(Kernel.read, facts["kernels"])), facts)

    def to_json(self) -> dict[str, Any]:
        """The form for programs."""
        return dict(self.facts) or {"schema": SCHEMA, "absent": self.absent}

    def __str__(self) -> str:
        """For people: one line."""
        if self.absent:
            return f"no figures of torch.compile: {self.absent}"
        taken = nanoseconds(self.seconds * 1e9)
        told = f"torch.compile over eager: {self.speedup}, {taken} a call"
        return f"{told}, eager {nanoseconds(self.eager * 1e9)} beside it" if self.eager else told


def compiled_of(model: ModelFile, request: Request, builds: Builder) -> Compiled:
    """What ``torch.compile`` makes of a model, perhaps from the cache. Raises KabuildError."""
    try:
        facts = run_tool("model_compiled", model, {}, request, builds).facts
    except LoadError as error:
        return Compiled(error.message)
    try:
        return Compiled.read(facts)
    except MALFORMED as error:
        raise unreadable(model, error) from None


def render_compiled(found: Compiled, most: int = 20) -> str:
    """The figures as text: a line, and a table of the ``most`` slowest kernels."""
    if found.absent:
        return str(found)
    rows = [("kernel", "calls", "time", "share", "of")]
    rows += [
        (
            _short(kernel.name),
            str(kernel.calls),
            nanoseconds(kernel.seconds * 1e9),
            f"{kernel.share:.1%}",
            "Inductor" if kernel.fused else "PyTorch",
        )
        for kernel in found.kernels[:most]
    ]
    lines = [str(found), text_table(rows, right=(1, 2, 3))]
    if len(found.kernels) > most:
        lines.append(f"and {len(found.kernels) - most} more kernels; --json has all")
    return "\n".join(lines)


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST // 2]}…{name[1 - _LONGEST // 2 :]}"
