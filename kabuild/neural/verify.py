"""A model with the kernels of passing solutions: whether it is still right, and how much faster."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kabuild.base.errors import LoadError, Position, Reason, UsageError
from kabuild.base.fs import atomic_write
from kabuild.builder import Builder
from kabuild.execution.isolation import require_sandbox
from kabuild.loading import find_workspace
from kabuild.loading.request import Request
from kabuild.loading.roots import BUILD_FILE
from kabuild.model.gate import Pick
from kabuild.model.platform import CPU
from kabuild.model.speedup import NO_SPEEDUP, Speedup
from kabuild.model.task_result import TaskResult
from kabuild.neural.assemble import assemble
from kabuild.neural.compiled import Compiled, compiled_of
from kabuild.neural.likeness import Likeness, has_logits, likeness_of
from kabuild.neural.packages import AGAIN, FILE, STEP, WHOLE, Known, package_of
from kabuild.neural.running import PACKAGE, ModelEndedError, ModelFile, finished, read_model
from kabuild.neural.training import Training, has_loss, training_of
from kabuild.neural.weighted import weighted
from kabuild.pipeline import Plan, Summary
from kabuild.report.table import Style, plain, text_table
from kabuild.store import Store

ALL, NONE = "all", "none"
_NO_FILE = re.compile(r"(no file '[^\n]*' in the workspace)(?:; .*)?")
"""How a build says that an agent has no solution, perhaps with a flag that tests have."""

_KERNEL = "kernel.py"
_MOST_KERNEL = 1 << 20


@dataclass(frozen=True)
class Replaced:
    """A part with a passing solution.

    Attributes:
        result: of its task.
        share: of the time of the model's operators.
        speedup: over PyTorch in the model's own shapes, each weighted with its calls; None if it
            was not measured.
    """

    name: str
    result: TaskResult
    share: float
    speedup: Speedup | None
    kernel: str = field(repr=False)


@dataclass(frozen=True)
class Variant:
    """The model with some of the kernels, judged as a whole.

    Attributes:
        name: ``all``, ``none``, or the part that was left out.
        file: the solution.
    """

    name: str
    file: Path
    result: TaskResult

    @property
    def speedup(self) -> Speedup | None:
        """Over the model's own code, eager."""
        return self.result.measured


@dataclass(frozen=True)
class Verified:
    """How a model with other kernels was judged.

    Attributes:
        unsolved: by part, why its task has no passing solution.
        predicted: the speedup of the operators by Amdahl's law; None where nothing was measured.
            A part with a wide interval counts with its lower end.
        variants: ``all`` first.
        likeness: of the logits of ``all``; None of a model that has none.
        compiled: what ``torch.compile`` makes of the model's own code; None if nothing is compared.
        training: how ``all`` trains; None of a model whose file has no loss.
        step: ``all``, judged by training steps; None as above.
        ended: why the process of ``all`` ended where it should have given logits or trained.
    """

    replaced: tuple[Replaced, ...]
    unsolved: Mapping[str, str] = field(hash=False)
    predicted: Speedup | None
    variants: tuple[Variant, ...]
    summaries: tuple[Summary, ...] = field(repr=False)
    likeness: Likeness | None = None
    compiled: Compiled | None = None
    training: Training | None = None
    step: Variant | None = None
    ended: str = ""

    @property
    def passed(self) -> bool:
        """Whether the model with all kernels is right, its logits and training included."""
        whole = self.variant(ALL)
        return bool(whole and whole.result.passed) and not self.wrong

    @property
    def wrong(self) -> str:
        """What is wrong with the logits or the training; empty if nothing is."""
        said = [self.likeness.wrong if self.likeness else ""]
        said.append(self.training.problem if self.training else "")
        if self.step and not self.step.result.passed:
            said.append(f"a training step: {_why(self.step.result)}")
        return next(filter(None, (*said, self.ended)), "")

    def variant(self, name: str) -> Variant | None:
        """The variant called ``name``."""
        return next((item for item in self.variants if item.name == name), None)

    def contribution(self, name: str) -> Speedup | None:
        """How much faster the whole is with a part's kernel than without it."""
        return over(self.variant(ALL), self.variant(name if len(self.replaced) > 1 else NONE))

    def over_compiled(self, variant: Variant) -> Speedup | None:
        """How much faster a variant is than what ``torch.compile`` makes of the model's code."""
        return quotient(variant.speedup, self.compiled.speedup if self.compiled else None)

    def to_json(self) -> dict[str, Any]:
        """The form for programs."""
        return {
            "predicted": self.predicted.value if self.predicted else None,
            "predicted_low": self.predicted.low if self.predicted else None,
            "predicted_high": self.predicted.high if self.predicted else None,
            "compiled": self.compiled.to_json() if self.compiled else None,
            "likeness": self.likeness.to_json() if self.likeness else None,
            "training": self.training.to_json() if self.training else None,
            "step": _variant_json(self.step) if self.step else None,
            "ended": self.ended,
            "passed": self.passed,
            "wrong": self.wrong,
            "unsolved": dict(self.unsolved),
            "parts": [
                {
                    "name": part.name,
                    "share": part.share,
                    **(part.speedup.to_json() if part.speedup else NO_SPEEDUP),
                    "contribution": _json(self.contribution(part.name)),
                }
                for part in self.replaced
            ],
            "variants": [
                {**_variant_json(item), "over_compiled": _json(self.over_compiled(item))}
                for item in self.variants
            ],
        }


def verify(directory: Path, request: Request, builds: Builder, *, alone: bool) -> Verified:
    """Judge all parts' solutions, then the model with those that pass, and without any of them.

    Where not ``alone``, also without each. Raises KabuildError.
    """
    root = find_workspace(request.cwd)
    package = package_of(directory, root)
    known = Known.load(directory)
    require_sandbox("a model's code", waived=not request.hermetic)
    model = read_model(directory / WHOLE / "model.py").text.decode()
    tasks = [name for name, part in known.parts.items() if part.is_task]
    if not tasks:
        what = f"no part of {directory} is a task"
        raise UsageError(Reason.BAD_FLAG, what, hint="extract other parts, with --part or --top")
    patterns = tuple(f"//{package}/{name}" for name in tasks)
    asked = replace(request, patterns=patterns)
    planned = builds.plan(asked)
    _check_known(known, directory, planned)
    judged = finished(builds.execute(asked, planned))
    parts = tuple(_replaced(known, judged, builds.store))
    unsolved = {r.label.name: _why(r) for r in judged.table if not r.passed}
    kernels = {part.name: part.kernel for part in parts}
    wanted = {ALL: kernels, NONE: {}} if kernels else {}
    if not alone and len(kernels) > 1:
        wanted |= {n: {k: v for k, v in kernels.items() if k != n} for n in kernels}
    variants, summaries = [], [judged]
    for name, chosen in wanted.items():
        file = root / "out" / PACKAGE / known.name / f"{_called(name)}.py"
        atomic_write(file, assemble(known, model, chosen).encode())
        pick = Pick.USUAL if name == ALL else Pick.WATCHED
        summary = _judged(f"//{package}/{WHOLE}", file, pick, request, builds)
        summaries.append(summary)
        variants.append(Variant(name, file, summary.table[0]))
    found = Verified(parts, unsolved, predicted(parts), tuple(variants), tuple(summaries))
    if variants:
        own = replace(read_model(directory / WHOLE / "model.py"), name=known.name)
        found = replace(found, compiled=compiled_of(own, request, builds))
    on_cpu = (request.platform or CPU).partition(":")[0] == CPU
    if found.passed and on_cpu:
        text = assemble(known, model, kernels).encode()
        made = ModelFile(variants[0].file, known.name, text)
        reference = read_model(directory / WHOLE / "reference.py").text
        found = compared(found, made, reference, request, builds)
    if found.passed and (directory / STEP / BUILD_FILE).is_file():
        file = variants[0].file
        summary = _judged(f"//{package}/{STEP}", file, Pick.USUAL, request, builds)
        step = Variant(ALL, file, summary.table[0])
        found = replace(found, step=step, summaries=(*found.summaries, summary))
    return found


def _check_known(known: Known, directory: Path, planned: Plan) -> None:
    """Raise LoadError for a ``model.json`` that does not fit its tasks, or this workspace."""
    position = Position(str(directory / FILE))
    problems = []
    if known.platform not in planned.loaded.loader.platforms.names():
        problems.append(f"unknown platform {known.platform!r:.80}")
    for label in planned.tasks:
        calls = known.parts[label.name].calls
        configs = planned.analysis.targets[label.in_trial(1)].target.attrs["configs"]
        if len(calls) != len(configs):
            problems.append(
                f"part '{label.name}' has {len(calls)} numbers of calls, "
                f"but its task has {len(configs)} configs"
            )
    if problems:
        raise LoadError(Reason.BAD_ATTRIBUTE, problems[0], position=position, hint=AGAIN)


def _judged(label: str, file: Path, pick: Pick, request: Request, builds: Builder) -> Summary:
    """A solution of a task, judged."""
    asked = replace(request, patterns=(label,), solution=file, pick=pick, agent=None)
    return finished(builds.run(asked))


def compared(
    found: Verified, model: ModelFile, reference: bytes, request: Request, builds: Builder
) -> Verified:
    """``found`` with what the model's logits and training are like, if ``reference`` has them."""
    text = reference.decode()
    doing = ""
    try:
        if has_logits(text):
            doing = "giving logits"
            found = replace(found, likeness=likeness_of(model, reference, request, builds))
        if has_loss(text):
            doing = "training"
            found = replace(found, training=training_of(model, reference, request, builds))
    except ModelEndedError as error:
        found = replace(found, ended=f"the model ended while {doing}: {error.message}")
    return found


def predicted(parts: Sequence[Replaced]) -> Speedup | None:
    """The speedup of a model's operators if its parts are faster, by Amdahl's law."""
    found = [(part.share, part.speedup) for part in parts if part.speedup]
    if len(found) < len(parts):
        return None
    value = _amdahl((share, speedup.value) for share, speedup in found)
    ends = [(share, speedup.ends) for share, speedup in found]
    known = [(share, pair) for share, pair in ends if pair]
    if len(known) < len(ends):
        return Speedup(value)
    low, high = (_amdahl((share, pair[i]) for share, pair in known) for i in (0, 1))
    return Speedup(value, low, high)


def _amdahl(parts: Iterable[tuple[float, float]]) -> float:
    """The speedup of the whole, from the shares and speedups of parts."""
    return 1 / max(1 - sum(share * (1 - 1 / speedup) for share, speedup in parts), 1e-9)


def _predicted(found: Verified) -> str:
    """The prediction for people: a lower bound if one of a part's speedup is all that is known."""
    least = any(part.speedup and part.speedup.wide for part in found.replaced)
    value = found.predicted
    return f"~{Speedup(value.value)}" if value and least else str(value)


def over(one: Variant | None, other: Variant | None) -> Speedup | None:
    """The speedup of one variant over another, from their speedups over the same baseline."""
    return quotient(one.speedup if one else None, other.speedup if other else None)


def quotient(first: Speedup | None, second: Speedup | None) -> Speedup | None:
    """One speedup over another, both over the same baseline; the interval is that of both."""
    if not first or not second:
        return None
    value = first.value / second.value
    if not first.ends or not second.ends:
        return Speedup(value)
    low, high = first.ends[0] / second.ends[1], first.ends[1] / second.ends[0]
    found = Speedup(value, low, high)
    return replace(found, value=low) if found.wide else found


def render(found: Verified, style: Style = plain) -> str:
    """The verdicts and figures as text."""
    lines = []
    if found.replaced:
        rows = [("part", "share", "speedup", "contribution")]
        rows += [
            (
                part.name,
                f"{part.share:.1%}",
                str(part.speedup or "-"),
                str(found.contribution(part.name) or "-"),
            )
            for part in found.replaced
        ]
        lines += [text_table(rows, right=(1,)), ""]
    lines += [f"{name} is unchanged: {why}" for name, why in found.unsolved.items()]
    verdicts = [("the model with", "verdict", "over eager", "over torch.compile")]
    for item in found.variants:
        problem = item.result.problem
        word = problem.reason or problem.word if problem else "PASS"
        if item.name == ALL and not problem and found.wrong:
            word = "FAIL"  # its results are right, and its logits or its training are not
        figures = (str(item.speedup or "-"), str(found.over_compiled(item) or "-"))
        verdicts.append((_said(item.name), word, *figures))
    if found.variants:
        lines.append(text_table(verdicts, style))
    if found.compiled:
        lines.append(f"\n{found.compiled}")
    lines += [f"\n{judged}" for judged in (found.likeness, found.training) if judged]
    if found.step:
        verdict = "PASS" if found.step.result.passed else _why(found.step.result)
        lines.append(f"\na training step: {verdict}, over eager: {found.step.speedup or '-'}")
    lines += [f"\n{found.ended}"] if found.ended else []
    if found.replaced and found.predicted:
        measured = over(found.variant(ALL), found.variant(NONE))
        lines.append(f"\npredicted for the operators, by their shares: {_predicted(found)}")
        if measured:
            lines.append(f"measured, all kernels over none of them: {measured}")
    if found.wrong:
        lines.append("\nthe model with all kernels does not pass, for what is said above")
    return "\n".join(lines)


def _replaced(known: Known, judged: Summary, store: Store) -> list[Replaced]:
    found = []
    for result in judged.table:
        name = result.label.name
        kernel = _kernel(result, judged, store) if result.passed else None
        if kernel is not None:
            part = known.parts[name]
            speedup = weighted(result.cases, part.calls)
            found.append(Replaced(name, result, part.share, speedup, kernel))
    return found


def _kernel(result: TaskResult, judged: Summary, store: Store) -> str | None:
    """The text that the gates judged."""
    for gate in result.gates.values():
        item = judged.settled.get(gate.label)
        file = item.result.file(_KERNEL) if item and item.result else None
        if file is not None and file.digest.size <= _MOST_KERNEL:
            return store.cas.get(file.digest).decode()
    return None


def _why(result: TaskResult) -> str:
    gate = result.problem
    if gate is None:
        return "it was not judged"
    if missing := _NO_FILE.fullmatch(gate.summary):
        return f"{missing[1]}: write a kernel there, or name another agent with --agent"
    return f"{gate.declared.name}: {gate.reason or gate.summary or gate.word}"


def _called(name: str) -> str:
    return name if name in {ALL, NONE} else f"without_{name}"


def _said(name: str) -> str:
    return {ALL: "all kernels", NONE: "none of them"}.get(name, f"all but {name}")


def _variant_json(item: Variant) -> dict[str, Any]:
    return {
        "name": item.name,
        "file": str(item.file),
        "passed": item.result.passed,
        "reason": gate.reason if (gate := item.result.problem) else "",
        "speedup": _json(item.speedup),
    }


def _json(speedup: Speedup | None) -> dict[str, float | None] | None:
    return speedup.to_json() if speedup else None
