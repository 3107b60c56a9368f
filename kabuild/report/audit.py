"""The audit of benchmarks: what is wrong with their tasks, and with their own checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kabuild.model.gate_result import GateResult
from kabuild.report.ladder import HEAD, Ladder, cases

_PREAMBLE = """\
What was tried, on tasks that were imported, by `kabuild validate`:

- **Admission** asks whether a task can tell a right kernel from a wrong one under kabuild's own
  comparison: outputs that hardly depend on inputs, made-up results that pass, and others.
- **The original's own check** was run, unchanged, on a candidate in its own process that returns
  what the task's reference does, spoilt on purpose. A result counts as *fooling* the check if it
  passes there and kabuild's judge finds it wrong.

What it does not mean:

- A fooled check says that a wrong kernel *could* pass. It says nothing about kernels that did.
- A rejected task may be a fine exercise. Its verdicts tell less about a kernel than they seem to.
- On `{platform}` sizes are *reduced*, or the original's *own*, with fewer rows where tensors would
  be too large. A finding at reduced sizes alone is only a hint about the original.
- Half precision is not a cheat. It is listed because single precision was asked for.
"""


@dataclass(frozen=True)
class AuditedTask:
    """One task of a benchmark.

    Attributes:
        label: as in commands.
        origin: equal for tasks that compute the same.
        left_out: the class of tasks that were not imported; empty if it was.
        gates: verdicts by gate.
    """

    label: str
    origin: str = ""
    left_out: str = ""
    gates: Mapping[str, GateResult] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class AuditedBenchmark:
    """One repository, with what was found.

    Attributes:
        commit: of the checkout; empty if unknown.
        patterns: what was asked for.
        whole: whether all of its tasks are here, or those of some patterns.
    """

    name: str
    commit: str
    tasks: tuple[AuditedTask, ...]
    patterns: tuple[str, ...]
    whole: bool = True

    @property
    def imported(self) -> list[AuditedTask]:
        """The tasks that were judged."""
        return [task for task in self.tasks if not task.left_out]

    @property
    def copies(self) -> list[list[str]]:
        """The labels of tasks with one origin, where there are several."""
        by: dict[str, list[str]] = {}
        for task in self.imported:
            by.setdefault(task.origin, []).append(task.label)
        return [sorted(labels) for labels in by.values() if len(labels) > 1]


def render_audit(found: Sequence[AuditedBenchmark], platform: str, samples: int) -> str:
    """The audit as Markdown."""
    parts = ["# An audit of benchmarks\n", _PREAMBLE.format(platform=platform)]
    for benchmark in found:
        parts += _benchmark(benchmark, platform, samples)
    return "\n".join(parts) + "\n"


def _benchmark(found: AuditedBenchmark, platform: str, samples: int) -> Iterator[str]:
    at = f" at {found.commit[:12]}" if found.commit else ""
    yield f"## {found.name}{at}\n"
    flags = f"--samples={samples} --platform={platform}"
    yield f"```\nkabuild validate {' '.join(found.patterns)} {flags}\n```\n"
    yield _table(("", "tasks"), [(what, str(count)) for what, count in _counts(found)])
    yield from _findings(found)
    ladder = Ladder.of(gate for task in found.imported for gate in task.gates.values()).rows()
    if ladder:
        yield "### Results of a ladder, by the original's check and by kabuild's\n"
        yield _table(HEAD, ladder)
    if found.copies:
        yield "### Tasks with one origin\n"
        yield "".join(f"- {', '.join(f'`{x}`' for x in labels)}\n" for labels in found.copies)


def _counts(found: AuditedBenchmark) -> Iterator[tuple[str, int]]:
    """What there is of each kind of task."""
    if found.whole:
        yield "in the benchmark", len(found.tasks)
        for reason, count in sorted(Counter(t.left_out for t in found.tasks).items()):
            if reason:
                yield f"left out: `{reason}`", count
    yield "imported", len(found.imported)
    if found.copies:
        yield "of another's origin", sum(len(labels) - 1 for labels in found.copies)
    for name in dict.fromkeys(name for task in found.imported for name in task.gates):
        gates = [task.gates[name] for task in found.imported if name in task.gates]
        judged = [gate for gate in gates if gate.verdict]
        yield f"judged by `{name}`", len(judged)
        if len(judged) < len(gates):
            yield f"not judged by `{name}`, which did not end", len(gates) - len(judged)
        yield f"passed `{name}`", sum(gate.passed for gate in judged)
        against = Counter(gate.reason for gate in judged if not gate.passed)
        for reason, count in sorted(against.items()):
            yield f"`{name}`: `{reason}`", count


def _findings(found: AuditedBenchmark) -> Iterator[str]:
    """Each finding with the tasks, and the command that shows it."""
    by: dict[tuple[str, str], list[AuditedTask]] = {}
    for task in found.imported:
        for kind, what in _of(task):
            by.setdefault((kind, what), []).append(task)
    if not by:
        return
    yield "### Findings\n"
    rows = [
        (f"`{kind}`", what, str(len(tasks)), f"`kabuild validate {tasks[0].label}`")
        for (kind, what), tasks in sorted(by.items(), key=lambda one: (one[0][0], -len(one[1])))
    ]
    yield _table(("finding", "by", "tasks", "for example"), rows)
    yield "<details><summary>All tasks</summary>\n"
    for (kind, what), tasks in sorted(by.items()):
        yield f"- `{kind}`, {what}: {', '.join(f'`{task.label}`' for task in tasks)}"
    yield "\n</details>\n"


def _of(task: AuditedTask) -> Iterator[tuple[str, str]]:
    for gate in task.gates.values():
        for kind, by in gate.findings.items():
            for what in by:
                said = what.rpartition(" raised ")[2].partition(":")[0]
                yield kind, said if kind.endswith("FAILS") else what
        for case in cases(gate):
            if case.get("verdict") == "REJECTED":
                yield str(case.get("reason")), gate.gate


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |\n" for row in lines)
