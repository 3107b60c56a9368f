"""The prompts for a model."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import attempts
from attempts import Attempt
from judging import Case, Judgement
from population import Candidate

RECENT = 6
_ROLE = """\
You optimise one GPU kernel, {kernel}. It has to stay correct for every shape of the task; among
correct kernels the fastest wins. A judge compiles it, compares it with an oracle, and times it.

Reply with a few sentences on what you change and why, then with exactly one code block between
``` lines: the whole of {kernel}, ready to compile. There must be no other code block.
"""
_READER = """\
You review one GPU kernel, {kernel}, before it is compiled and run. Look for errors; style and speed
do not matter. Think it through, then end with exactly these three lines, each with ok or wrong:

compile: ok or wrong (does it compile, with the entry points that the task requires?)
memory: ok or wrong (does it access only permitted memory, and write every output, for all shapes?)
numerics: ok or wrong (are its results correct for all shapes, values and types?)
"""
WHATS: Mapping[str, str] = {
    "write": "Write the kernel: the file above has only its signature.",
    "improve": "Make it faster with one well-founded change.",
    "rewrite": "Rewrite it with another approach that you expect to be faster than those so far.",
    "combine": "Combine the strengths of this kernel and of the other one.",
    "repair": "This attempt is wrong. Repair it, and keep the change that should make it faster.",
}
"""The kinds of change that may be asked for."""


@dataclass(frozen=True)
class Task:
    """The files in a session's working directory."""

    name: str
    kernel: str
    brief: str
    reference: str
    configs: tuple[Mapping[str, Any], ...] = field(hash=False)
    sheets: str

    @classmethod
    def read(cls, workspace: Path, kernel: str) -> Task:
        """Read them from that directory. Raises OSError, ValueError."""
        brief = (workspace / "BRIEF.md").read_text()
        sheets = [workspace / name for name in ("CHEATSHEET.md", "TARGET.md")]
        return cls(
            brief.splitlines()[0].lstrip("# ").strip() if brief.strip() else kernel,
            kernel,
            brief,
            (workspace / "reference.py").read_text(),
            tuple(json.loads((workspace / "configs.json").read_text())),
            "\n".join(path.read_text() for path in sheets if path.exists()),
        )

    @property
    def is_python(self) -> bool:
        """Whether the kernel is Python, with Triton; else HIP."""
        return self.kernel.endswith(".py")

    @property
    def language(self) -> str:
        """The language of its code block."""
        return "python" if self.is_python else "cpp"


@dataclass(frozen=True)
class Ask:
    """The subject of one question.

    Attributes:
        what: one of ``WHATS``.
        start: the text of the parent kernel.
        known: the parent as a candidate, if it is one.
        other: another candidate, for ``combine``.
        failure: what is wrong with the parent, for ``repair``.
        focus: the config to look at, or empty; ``most`` is the most that it can gain overall.
    """

    what: str
    start: str
    known: Candidate | None = None
    other: Candidate | None = None
    failure: str = ""
    focus: str = ""
    most: float = 1.0


def system(task: Task) -> str:
    """The part that is the same in all questions about a task."""
    return _ROLE.format(kernel=task.kernel) + _about(task, with_sheets=True)


def reader_system(task: Task) -> str:
    """The same for the soft verifier."""
    return _READER.format(kernel=task.kernel) + _about(task, with_sheets=False)


def question(task: Task, ask: Ask, tried: Sequence[Attempt]) -> str:
    """The text of one question."""
    parts = [
        _code("The kernel to start from", task, ask.start),
        _known(ask.known),
        _code("Another kernel", task, ask.other.source) if ask.other else "",
        _section("What is wrong with it", ask.failure),
        _section("Errors so far", attempts.errors(tried)),
        _section("What was tried last", attempts.recent(tried, RECENT)),
        _section("What to do", f"{WHATS[ask.what]}{_shape(task, ask)}"),
    ]
    return "\n".join(part for part in parts if part)


def reading(task: Task, source: str) -> str:
    """The text of a question to the soft verifier."""
    return _code("The kernel to review", task, source)


def measured(timed: Judgement) -> str:
    """The times of a candidate by config, with the resulting rates."""
    lines = []
    for case in timed.cases:
        warm = ""
        if case.warm_ns:
            warm = f", {case.warm_ns:.0f} ns with its data in the caches"
        time = f"{case.new_ns:.0f} ns a call{warm}; {case.ratio}{_rates(case)}"
        lines.append(f"- {case.config}: {time}")
    return "\n".join(lines)


def _rates(case: Case) -> str:
    """Its rates, to be compared with the processor's limits."""
    if not case.bytes:
        return ""
    moved = f"; its tensors, each once, at {case.bytes_per_second / 1e9:.4g} GB/s"
    if not case.flops:
        return moved
    return (
        f"{moved}, {case.flops_per_second / 1e9:.4g} GFLOP/s, {case.flops / case.bytes:.3g} a byte"
    )


def _about(task: Task, *, with_sheets: bool) -> str:
    configs = "\n".join(json.dumps(config, sort_keys=True) for config in task.configs)
    parts = [
        _section("The task", task.brief),
        _section("reference.py", f"```python\n{task.reference.strip()}\n```"),
        _section("The shapes that are timed", configs),
        _section("How kernels are written here", task.sheets) if with_sheets else "",
    ]
    return "\n" + "\n".join(part for part in parts if part)


def _known(candidate: Candidate | None) -> str:
    if candidate is None:
        return ""
    compiled = next((v for v in candidate.proved.verdicts if v["gate"] == "compile"), {})
    parts = [
        f"It is right, and {candidate.fitness:.3f}x as fast as the first one.",
        f"The compiler: {compiled['summary']}" if compiled.get("summary") else "",
        *(_resources(kernel) for kernel in compiled.get("kernels") or ()),
        "Its times, each with the ratio to what it was timed against and the 95 % interval:",
        measured(candidate.timed),
    ]
    return _section("What is known of it", "\n".join(part for part in parts if part))


def _resources(kernel: Mapping[str, Any]) -> str:
    """The compiler's figures for one kernel: registers, spills, shared memory, occupancy."""
    told = ", ".join(f"{name} {value}" for name, value in sorted(kernel.items()) if name != "name")
    return f"- {kernel.get('name', 'kernel')}: {told}"


def _shape(task: Task, ask: Ask) -> str:
    """The shape to look at, and the most that it can gain overall."""
    if not ask.focus:
        return ""
    config = next((c for c in task.configs if c.get("name") == ask.focus), {})
    dims = ", ".join(f"{name} = {value}" for name, value in (config.get("dims") or {}).items())
    shape = f" ({dims}, {config.get('dtype', '')})" if dims else ""
    if ask.most == math.inf:
        return f" It is timed for {ask.focus}{shape} alone."
    return (
        f" Most is to be gained at {ask.focus}{shape}: if that took no time, all configs together "
        f"would be {ask.most:.2f}x as fast as at first. Write for this shape; choose by shape at "
        f"run time where others need something else, and make none slower."
    )


def _code(title: str, task: Task, source: str) -> str:
    return _section(title, f"```{task.language}\n{source.rstrip()}\n```")


def _section(title: str, text: str) -> str:
    return f"## {title}\n\n{text.strip()}\n" if text.strip() else ""
