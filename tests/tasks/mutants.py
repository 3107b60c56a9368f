"""Changes a kernel in one place, and prints the changes that ``correctness`` does not see.

    python -m tests.tasks.mutants [--each=8] [--seed=0] [LABEL...]

What it prints is equivalent to the kernel, such as another order of a sum or a bound that no size
reaches, or it is a weakness of the task: inputs that never reach a branch, a tolerance that is too
wide, a term too small to count. Somebody has to look. The kernel is the given one, or the expert of
tasks that begin with a stub.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import kabuild
from tests.tasks.declared import REPOSITORY, Declared, all_tasks

GATES = ("compile", "correctness")
_NUMBER = r"(?<![\w.])(?!0\.0\b)(\d+\.\d*(?:e[-+]?\d+)?)(?=f?\b)"
_CHANGES: tuple[tuple[str, str], ...] = (
    (_NUMBER, r"(1.5 * \1)"),
    (_NUMBER, "0.0"),
    (r" \+ 1\b", ""),
    (r" - 1\b", ""),
    (r" \+ (?=[\w(])", " - "),
    (r" - (?=[\w(])", " + "),
    (r" \* (?=[\w(])", " / "),
    (r" / (?=[\w(])", " * "),
    (r" < ", " <= "),
    (r" <= ", " < "),
    (r" > ", " >= "),
    (r" >= ", " > "),
    (r" == ", " != "),
    (r" && ", " || "),
    (r" \|\| ", " && "),
    (r" & (?=\()", " | "),
    (r"\bfmaxf\(", "fminf("),
    (r"\bfminf\(", "fmaxf("),
    (r"\btl\.maximum\(", "tl.minimum("),
    (r"\btl\.minimum\(", "tl.maximum("),
    (r"\b(?:expf|logf|sqrtf|rsqrtf|fabsf|tanhf|log1pf|erff|rintf|roundf)\(", "("),
    (r"\btl\.(?:exp|log|sqrt|abs|sigmoid|exp2|rsqrt)\(", "("),
    (r" \+= ", " = "),
    (r"\? ([^?:]+) : ([^?:;]+);", r"? \2 : \1;"),
    (r"\? ([^?:]+) : ", r"? 0 : "),
)

_SKIPPED = re.compile(r"\s*(//|#|const int|int|constexpr|static constexpr|for |\"\"\"|__)")


@dataclass(frozen=True)
class Mutant:
    """A kernel that differs in one line, counted from 1."""

    line: int
    before: str
    after: str
    text: str


def mutants(kernel: str, *, of_hip: bool) -> list[Mutant]:
    """Every change of every place, in the order of the text."""
    lines = kernel.splitlines(keepends=True)
    found: dict[str, Mutant] = {}
    for index in _device_lines(lines, of_hip=of_hip):
        code = lines[index]
        for pattern, replacement in _CHANGES:
            for place in re.finditer(pattern, code):
                after = code[: place.start()] + place.expand(replacement) + code[place.end() :]
                text = "".join([*lines[:index], after, *lines[index + 1 :]])
                found.setdefault(text, Mutant(index + 1, code.strip(), after.strip(), text))
    return list(found.values())


def _device_lines(lines: list[str], *, of_hip: bool) -> Iterator[int]:
    """The lines of device code that compute values.

    What decides grids and blocks is left alone, and most of what computes addresses, since a wrong
    address shows at once.
    """
    inside = of_hip
    for index, line in enumerate(lines):
        if not of_hip and line[:1].strip():
            inside = line.startswith("@triton.jit") or (inside and line.startswith(("def ", ")")))
        elif of_hip and line.startswith(("hipError_t", 'extern "C"')):
            return
        if inside and not _SKIPPED.match(line) and "<<<" not in line:
            yield index


def _kernel(task: Declared) -> Path:
    if task.own_kernel_runs:
        return task.kernel
    return task.package / "solutions/expert" / task.kernel.name


def main() -> int:
    """Judge mutants of the tasks that are named, or of all; print those that pass."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("labels", nargs="*")
    parser.add_argument("--each", type=int, default=8, help="mutants of a kernel")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    tasks = [task for task in all_tasks() if not given.labels or task.label in given.labels]
    with kabuild.Evaluator(REPOSITORY, jobs=given.jobs) as evaluator:
        for task in tasks:
            if (kernel := _kernel(task)).exists():
                every = mutants(kernel.read_text(), of_hip=kernel.suffix == ".hip")
                chosen = random.Random(f"{given.seed} {task.label}")
                some = sorted(
                    chosen.sample(every, min(given.each, len(every))), key=lambda m: m.line
                )
                _judge(evaluator, task, some)
    return 0


def _judge(evaluator: kabuild.Evaluator, task: Declared, some: list[Mutant]) -> None:
    counts: dict[str, int] = {}
    survivors: list[Mutant] = []
    verdicts = evaluator.map(task.label, [mutant.text for mutant in some], gates=GATES)
    for mutant, done in zip(some, verdicts, strict=True):
        last = "ERROR" if done.error else done.problem.reason if done.problem else "PASS"
        counts[last] = counts.get(last, 0) + 1
        if last in ("PASS", "ERROR"):
            survivors.append(mutant)
    said = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    print(f"{task.label}: {said}", flush=True)
    for mutant in survivors:
        print(f"  {mutant.line}: {mutant.before}\n   -> {mutant.after}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
