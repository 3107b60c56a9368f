"""Runners in this process, for tests of the judge alone: same poison, no sandbox."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from base import shapes
from base.program import Batch, CandidateFault, Config, Program, RunnerPolicy, Signature
from base.spec import parse_spec
from base.tensors import torch_dtype
from perf import gate
from terms.dtypes import DTYPES
from terms.reasons import Reason
from terms.verdict import Verdict
from torch import Tensor

Entry = Callable[..., None]
Clock = Callable[[Program, int], tuple[int, ...]]  # the times of a ``Batch``


def side_of(program: Program) -> str:
    """Which side a program of these specs is."""
    return Path(program.path).name


def steady(program: Program, calls: int) -> tuple[int, int]:
    """A clock: 20 ms a call for the baseline, 10 ms for the candidate, 0.1 ms a batch."""
    each = 10_000_000 if side_of(program) == "candidate" else 20_000_000
    return calls * each, calls * each + 100_000


@dataclass
class Doubles:
    """A launcher whose programs are functions of this process, by side."""

    entries: Mapping[str, Entry]
    clock: Clock = steady
    opened: list[str] = field(default_factory=list)
    alive: int = 0
    most_alive: int = 0
    bypass: bool = False  # whether results come out even where launches are left out
    end: CandidateFault | None = None

    made: list[Double] = field(default_factory=list)

    def open(
        self, program: Program, signature: Signature, policy: RunnerPolicy | None = None
    ) -> Double:
        self.opened.append(side_of(program))
        self.alive += 1
        self.most_alive = max(self.most_alive, self.alive)
        launched = policy is None or policy.launches
        self.made.append(Double(self, program, signature, works=launched or self.bypass))
        return self.made[-1]

    def alive_sides(self) -> list[str]:
        """Of each runner that is alive, which side it is."""
        return [side_of(double.program) for double in self.made if double.is_open]


class Double:
    """One runner in this process."""

    def __init__(
        self, launcher: Doubles, program: Program, signature: Signature, *, works: bool
    ) -> None:
        self._launcher = launcher
        self.program = program
        self._signature = signature
        self._works = works
        self._config: Config | None = None
        self.is_open = True

    def load(self, config: Config, slots: int) -> None:
        assert self.is_open
        self._config = config

    def batch(self, inputs: Sequence[Mapping[str, Tensor]], left_out: int | None = None) -> Batch:
        assert self.is_open
        outputs = tuple(
            self._call(given, works=index != left_out or self._launcher.bypass)
            for index, given in enumerate(inputs)
        )
        return Batch(outputs, *self._launcher.clock(self.program, len(inputs)))

    @property
    def spent_seconds(self) -> float:
        return 0.0

    def repeat(self, inputs: Mapping[str, Tensor], calls: int) -> Batch:
        assert self.is_open
        outputs = [self._call(inputs) for _ in range(calls)][-1:]
        return Batch(tuple(outputs), *self._launcher.clock(self.program, calls))

    def replay(self, inputs: Sequence[Mapping[str, Tensor]]) -> Batch | None:
        return self.batch(inputs)

    def empty(self) -> Batch:
        return Batch((), *self._launcher.clock(self.program, 0))

    def close(self) -> None:
        self.kill()
        if self._launcher.end is not None and side_of(self.program) == "candidate":
            raise self._launcher.end

    def kill(self) -> None:
        self._launcher.alive -= self.is_open
        self.is_open = False

    def _call(self, given: Mapping[str, Tensor], *, works: bool = True) -> dict[str, Tensor]:
        config = self._config
        assert config is not None
        outputs = {}
        for argument in self._signature.outputs:
            name = shapes.dtype_name(argument, config)
            bits = getattr(torch, DTYPES[name].bits_name)
            blank = torch.full(shapes.shape(argument, config.dims), DTYPES[name].poison, dtype=bits)
            outputs[argument.name] = blank.view(torch_dtype(name))
        if not (self._works and works):
            return outputs
        copies = {name: tensor.clone() for name, tensor in given.items()}
        entry = self._launcher.entries[side_of(self.program)]
        try:
            entry(**copies, **outputs, **config.scalars, **config.dims)
        except CandidateFault:
            self.kill()
            raise
        except Exception as error:
            self.kill()
            raise CandidateFault(Reason.EXCEPTION, repr(error)) from error
        if any(not _same_bits(copies[name], given[name]) for name in given):
            self.kill()
            raise CandidateFault(Reason.INPUT_MUTATED, "input mutated")
        return outputs


def _same_bits(one: Tensor, other: Tensor) -> bool:
    """Equal, NaN included."""
    return torch.equal(one.contiguous().view(torch.uint8), other.contiguous().view(torch.uint8))


SPEC: dict[str, Any] = {
    "schema": 1,
    "gate": "correctness",
    "platform": "cpu",
    "family": "hip2hip",
    "candidate": {"abi": "hip", "path": "candidate", "entry": "softmax"},
    "baseline": {"abi": "hip", "path": "baseline", "entry": "softmax"},
    "libraries": [],
    "runner": "runner/hip-runner",
    "signature": {
        "inputs": [["x", "T", ["rows", "cols"]]],
        "outputs": [["y", "T", ["rows", "cols"]]],
        "scalars": [["scale", 1.0]],
        "dims": ["rows", "cols"],
    },
    "space": {"dims": {"rows": [1, 4096], "cols": [1, 8192]}, "dtypes": ["f32", "f16"]},
    "configs": [
        {
            "name": "f32 rows=8 cols=64",
            "dims": {"rows": 8, "cols": 64},
            "dtype": "f32",
            "scalars": {"scale": 1.0},
        },
        {
            "name": "f16 rows=3 cols=257",
            "dims": {"rows": 3, "cols": 257},
            "dtype": "f16",
            "scalars": {"scale": 0.5},
        },
    ],
    "flops": "5 * rows * cols",
    "limits": {"elements": 4096},
    "salt": "test-salt",
    "policy": {},
}
REFERENCE = """
import torch

def inputs(config, generator):
    x = torch.randn(config["rows"], config["cols"], generator=generator)
    return {"x": x.to(config["dtype"])}

def reference(x, scale, **_):
    return {"y": torch.softmax(x * scale, dim=-1)}
"""


def softmax(x: Tensor, y: Tensor, scale: float, **_: object) -> None:
    """An honest kernel: computes in float32 and rounds once."""
    y.copy_(torch.softmax(x.float() * scale, dim=-1))


def careful_softmax(x: Tensor, y: Tensor, scale: float, **_: object) -> None:
    """Another honest kernel, of another order of operations."""
    moved = (x.float() - x.float().amax(-1, keepdim=True)) * scale
    powers = torch.exp2(moved * 1.4426950408889634)
    y.copy_(powers * powers.sum(-1, keepdim=True).reciprocal())


def judge(
    folder: Path,
    candidate: Entry | None = None,
    baseline: Entry | None = None,
    clock: Clock = steady,
    **policy: Any,
) -> tuple[Verdict, Any, Doubles]:
    """The perf gate's verdict of softmax or of what is given, its samples, and the runners."""
    spec = parse_spec(write_spec(folder, gate="perf", policy=policy))
    programs = {"candidate": candidate or softmax, "baseline": baseline or softmax}
    launcher = Doubles(programs, clock)
    verdict = gate.run(spec, launcher)
    assert launcher.alive == 0, "a runner was left behind"
    return verdict, json.loads(verdict.files["samples.json"]), launcher


def write_spec(folder: Path, reference: str = REFERENCE, **changes: Any) -> dict[str, Any]:
    """A spec as JSON, with its reference and the files of both sides in ``folder``."""
    path = folder / "reference.py"
    path.write_text(reference)
    sides = {}
    for side in ("candidate", "baseline"):
        (folder / side).write_text("a program")
        sides[side] = {**SPEC[side], "path": str(folder / side)}
    return {**SPEC, **sides, "reference": str(path), **changes}
