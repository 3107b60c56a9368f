"""The proof gate: whether an imported task asks the same as its original, and judges alike.

1. The same question: under one seed the adapter's inputs and weights are the original's, bit for
   bit; its results too, up to the order of sums.
2. The same answer: a ladder of results goes to the original's own check, and to ours.

The original's check is tested, too. Wrong results that it accepts and ours rejects are findings
about the benchmark, not faults of the task.
"""

from __future__ import annotations

import contextlib
import resource
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from base import shapes
from base.program import Config
from base.seeds import Seeds
from base.spec import Spec, SpecError, config_name, read_policy
from base.tensors import torch_dtype
from terms.policy import DEFAULT, JudgingPolicy
from terms.tolerance import Bound, bounds
from terms.verdict import FAIL, PASS, REJECTED, SKIPPED, Verdict
from torch import Tensor
from truth import comparison
from truth.assessment import Assessor, Call
from truth.oracle import Oracle, TaskFault
from truth.side import Launching
from truth.task_code import TaskCode

from proof.rungs import ORIGINALS_OWN, Answer, Rung, exactly, halved, ladder

ORIGINAL, CHECK = "original", "original_check"
"""An adapter's functions: the original's own code for a config, and its check of a candidate."""

LARGEST = 1 << 20
"""The original's own sizes are tried up to this many elements of all tensors together."""

WIDE_SECONDS = 5.0
"""At the original's own sizes, further rungs are left out after this much computing."""

MEMORY = 10 << 30
"""The limit on address space, in bytes, at the original's own sizes."""

_ROUNDINGS = 16
"""How far a sum in another order is off at most, in roundings of the typical value."""

REDUCED, OWN = "reduced", "own"
"""Sizes of a case: this platform's, or the original's, perhaps with fewer rows."""

FOOLED, UNCHECKED = "ORIGINAL_CHECK_FOOLED", "OUTPUT_UNCHECKED"
FAILS, EXACT = "ORIGINAL_CHECK_FAILS", "EXACT_REFUSED"


@dataclass(frozen=True)
class ProofPolicy(JudgingPolicy):
    """The correctness gate's policy, and the configs of all platforms.

    Attributes:
        seconds: of computing, after which the remaining rungs are left out.
    """

    declared: tuple[Mapping[str, Any], ...] = ()
    seconds: float = 150.0


@dataclass
class Findings:
    """The cases of the verdict, and the problems found, by kind."""

    cases: list[dict[str, Any]] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    fooled: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    failing: list[str] = field(default_factory=list)
    exact: list[str] = field(default_factory=list)

    def to_json(self) -> list[dict[str, Any]]:
        """The findings about the original."""
        named = {
            FOOLED: self.fooled,
            UNCHECKED: self.unchecked,
            FAILS: self.failing,
            EXACT: self.exact,
        }
        return [{"kind": kind, "by": list(dict.fromkeys(by))} for kind, by in named.items() if by]


def run(spec: Spec, launcher: Launching) -> Verdict:
    """Prove one imported task. Raises SpecError, and TaskFault for an adapter that fails."""
    del launcher  # no candidate runs; the original's code runs where the oracle does
    policy = read_policy(ProofPolicy, spec.policy)
    try:
        limits = bounds(policy.tolerance)
        names = tuple(argument.name for argument in spec.signature.results)
        compare = comparison.read(spec.compare, names)
    except ValueError as error:
        raise SpecError(str(error)) from None
    oracle = Oracle.of(spec)
    assessor = Assessor(oracle, spec.signature, limits, compare, factor=policy.baseline_factor)
    proof = _Proof(spec, policy, oracle, assessor, limits)
    for config in spec.configs:
        proof.same_question(config)
        proof.same_answer(config, policy.seconds)
    with within_memory(on_device=spec.candidate.on_device):
        for config in proof.others():
            proof.at_own_size(config)
    return _verdict(proof.findings)


class _Proof:
    def __init__(
        self,
        spec: Spec,
        policy: ProofPolicy,
        oracle: Oracle,
        assessor: Assessor,
        limits: Mapping[str, Bound],
    ) -> None:
        self.findings = Findings()
        self._spec = spec
        self._policy = policy
        self._oracle = oracle
        self._assessor = assessor
        self._limits = limits
        self._code = TaskCode(spec.reference)
        self._seeds = Seeds(spec.salt, "", spec.gate)

    def others(self) -> Iterator[Config]:
        """The original's own configs, with fewer rows where they are too large for this machine."""
        known = {config.name for config in self._spec.configs}
        order = [*self._spec.configs[0].dims]
        for said in self._policy.declared:
            dims = self._with_fewer_rows({name: said["dims"][name] for name in order})
            name = config_name(said["dtype"], dims) if dims else ""
            if dims and name not in known:
                known.add(name)
                shown = {"name": name, "dims": dims, "dtype": said["dtype"]}
                yield replace(self._spec.configs[0], **shown)

    def _with_fewer_rows(self, dims: dict[str, int]) -> dict[str, int] | None:
        """``dims``, with inputs' first axis halved until tensors are small; None if that fails."""
        inputs = [a for a in self._spec.signature.inputs if a.shape]
        rows = [name for name in dims if any(name in str(a.shape[0]) for a in inputs)][:1]
        while self._elements(dims) > LARGEST:
            smaller = {**dims, **{name: dims[name] // 2 for name in rows}}
            if not rows or not self._spec.space.contains(smaller):
                return None
            dims = smaller
        return dims

    def at_own_size(self, config: Config) -> None:
        """Compare at the original's own sizes; leave out what this machine cannot compute."""
        before = len(self.findings.different), len(self.findings.cases)
        try:
            self._at_own_size(config, before)
        except (torch.OutOfMemoryError, MemoryError) as error:
            del self.findings.different[before[0] :], self.findings.cases[before[1] :]
            self._left_out(config, f"this machine has too little memory: {error}")

    def _at_own_size(self, config: Config, before: tuple[int, int]) -> None:
        self.same_question(config)
        if len(self.findings.different) > before[0]:
            said = self.findings.different[-1]
            if "memory" in said or "did not end" in said:
                del self.findings.different[before[0] :], self.findings.cases[before[1] :]
                self._left_out(config, said)
            return
        try:
            self.same_answer(config, WIDE_SECONDS, OWN)
        except TaskFault as fault:
            self._left_out(config, str(fault))

    def _left_out(self, config: Config, why: str) -> None:
        self.findings.cases.append(
            {"check": "own size", "config": config.name, "verdict": SKIPPED, "detail": why[:200]}
        )

    def same_question(self, config: Config) -> None:
        """Compare the adapter's inputs, weights and results with the original's."""
        seeds = {part: self._seed(config, part) for part in ("inputs", "state")}
        try:
            theirs = self._code.call(self._code.function(ORIGINAL), _request(config), seeds)
            ours = self._drawn(config, theirs)
        except TaskFault as fault:
            self._note_question(config, "inputs", str(fault))
            return
        theirs = {part: dict(tensors) for part, tensors in theirs.items()}
        for part, mine in ((part, mine) for part, mine in ours.items() if part in theirs):
            said = theirs[part].keys() ^ mine.keys()
            off = {n for n in mine.keys() - said if not _identical(theirs[part][n], mine[n])}
            rounded = {n for n in off if part == "results" and _close(theirs[part][n], mine[n])}
            note = "equal up to the order of sums" if rounded else ""
            self._note_question(config, part, ", ".join(sorted({*said, *off} - rounded)), note)

    def _drawn(self, config: Config, theirs: Mapping[str, Any]) -> dict[str, dict[str, Tensor]]:
        """The adapter's inputs and weights, and its results for the original's own.

        The adapter moves weights, and buffers that a call changes, if construction leaves them
        constant. These differ on purpose, so the original's are used here.
        """
        inputs = self._oracle.inputs(config, self._generator(config, "inputs"))
        state = self._oracle.state(config, self._generator(config, "state"))
        given = {n: t.clone() for part in ("inputs", "state") for n, t in theirs[part].items()}
        moved = {n for n in (*state, *self._updated()) if _constant(given.get(n))}
        results = self._oracle.compute(config, given)
        return {
            "inputs": {n: given[n] if n in moved else t for n, t in inputs.items()},
            "state": {n: given[n] if n in moved else t for n, t in state.items()},
            "results": results,
        }

    def _updated(self) -> set[str]:
        """The inputs that a call changes."""
        results = {argument.name for argument in self._spec.signature.results}
        return {argument.name for argument in self._spec.signature.inputs} & results

    def _note_question(self, config: Config, part: str, wrong: str, note: str = "") -> None:
        what = f"same {part}"
        if wrong:
            self.findings.different.append(f"{what} ({config.name}): {wrong}")
        self.findings.cases.append(
            {
                "check": what,
                "config": config.name,
                "verdict": FAIL if wrong else PASS,
                "detail": wrong or note,
            }
        )

    def same_answer(self, config: Config, seconds: float, sizes: str = REDUCED) -> None:
        """Give the ladder to both checks, for ``seconds`` of computing. Raises TaskFault."""
        calls = [self._call(config, draw) for draw in range(2)]
        right = self._oracle.compute(config, calls[1].inputs)
        first = self._oracle.compute(config, calls[0].inputs)
        slack: Mapping[str, float] = {}
        if not self._oracle.structured:
            slack = self._assessor.excesses(calls[1], self._typed(config, right))
        began = time.process_time()
        for rung in ladder([*right], self._limits):
            case = {"check": rung.name, "config": config.name, "sizes": sizes}
            if time.process_time() - began > seconds:
                self.findings.cases.append({**case, "verdict": SKIPPED, "theirs": "", "ours": ""})
                continue
            made = self._made(rung, config, calls[1], right, first)
            said = self._theirs(rung, config) if made is not None else None
            if made is None or said is None:
                continue
            ours = self._assessor.assess(calls[1], self._typed(config, made), slack)
            self._note_answer(rung, case, said, "" if ours.ok else ours.detail)
            if said and rung.name == ORIGINALS_OWN:
                return  # a check that refuses right results proves nothing about wrong ones

    def _made(
        self,
        rung: Rung,
        config: Config,
        call: Call,
        right: Mapping[str, Tensor],
        first: Mapping[str, Tensor],
    ) -> dict[str, Tensor] | None:
        if rung.halves:
            if all(halved(tensor) is tensor for tensor in call.inputs.values()):
                return None
            right = self._oracle.compute(config, {n: halved(t) for n, t in call.inputs.items()})
        if rung.exact:
            with exactly():
                exact = self._oracle.compute(config, call.inputs)
            if all(_identical(right[name], exact[name]) for name in right):
                return None
            right = exact
        made = rung.of([*right.values()], [*first.values()])
        return None if made is None else dict(zip(right, made, strict=True))

    def _theirs(self, rung: Rung, config: Config) -> str | None:
        """The original check's complaint about a rung: "" if right; None if it does not apply."""
        answer, said = Answer(rung), ""
        for round_ in range(2 if rung.twice else 1):
            seed = self._seed(config, f"check {round_}")
            try:
                check = self._code.function(CHECK)
                said = self._code.call(check, _request(config), seed, answer)
            except TaskFault as fault:
                if isinstance(fault.__cause__, NameError):
                    raise  # the adapter does not know this version of the check
                said = str(fault)
        return said if answer.applied or said else None

    def _note_answer(self, rung: Rung, case: dict[str, Any], theirs: str, ours: str) -> None:
        words = {"theirs": FAIL if theirs else PASS, "ours": FAIL if ours else PASS}
        self.findings.cases.append({**case, **words, "verdict": PASS, "detail": theirs[:200]})
        own = " (own sizes)" if case["sizes"] == OWN else ""
        if rung.name == ORIGINALS_OWN:
            self.findings.failing += [theirs.partition("\n")[0][:200]] if theirs else []
            self.findings.refused += (
                [f"kabuild's check refuses the original's results: {ours}"] if ours else []
            )
        elif rung.exact:
            self.findings.exact += [rung.name + own] if theirs and not ours else []
        elif rung.only >= 0 and not theirs and ours:
            self.findings.unchecked.append(rung.name.removesuffix(" alone wrong") + own)
        elif rung.wrong and rung.only < 0 and not theirs and ours:
            self.findings.fooled.append(rung.name + own)
        elif rung.wrong and theirs and not ours and rung.only < 0 and not _halving(rung):
            self.findings.refused.append(f"only the original's check refuses {rung.name}: {theirs}")

    def _call(self, config: Config, draw: int) -> Call:
        generator = self._generator(config, f"answer {draw}")
        inputs = self._oracle.inputs(config, generator) | self._oracle.state(config, generator)
        return Call(config, DEFAULT, inputs, self._oracle.expected(config, inputs))

    def _typed(self, config: Config, outputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        declared = {a.name: shapes.dtype_name(a, config) for a in self._spec.signature.results}
        return {n: t.to(torch_dtype(declared[n])) for n, t in outputs.items()}

    def _generator(self, config: Config, part: str) -> torch.Generator:
        return self._seeds.generator(part, config.name)

    def _seed(self, config: Config, part: str) -> int:
        """The seed that an adapter draws from the generator of ``part``."""
        generator = self._generator(config, part)
        device = generator.device
        return int(torch.randint(0, 2**31 - 1, (1,), generator=generator, device=device))

    def _elements(self, dims: Mapping[str, int]) -> int:
        signature = self._spec.signature
        arguments: Sequence[Any] = (*signature.inputs, *signature.state, *signature.results)
        return sum(torch.Size(shapes.shape(a, dims)).numel() for a in arguments)


def _verdict(found: Findings) -> Verdict:
    told = found.to_json()
    extra = {"findings": told}
    wrong = (("ORIGINAL_DIFFERS", found.different), ("ANSWERS_DIFFER", found.refused))
    for reason, problems in wrong:
        if problems:
            summary, detail = problems[0].partition("\n")[0], "\n".join(problems)
            return Verdict("proof", REJECTED, reason, summary, detail, found.cases, extra)
    said = "; ".join(f"{item['kind']}: {', '.join(item['by'])}" for item in told)
    summary = f"same as the original; {said or 'its check was not fooled'}"
    return Verdict("proof", PASS, "", summary, "", found.cases, extra)


@contextlib.contextmanager
def within_memory(*, on_device: bool) -> Iterator[None]:
    """Limit the body to most of the action's memory: allocations fail before the action does.

    On a device there is no such limit: its driver maps much more than it ever uses.
    """
    if on_device:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _request(config: Config) -> dict[str, Any]:
    """A config as adapters take it."""
    return {**config.dims, **config.scalars}


def _halving(rung: Rung) -> bool:
    """Whether a rung is a rounding error, which a tolerance may allow."""
    return rung.halves or "half" in rung.name


def _constant(tensor: Tensor | None) -> bool:
    """Whether construction leaves all elements equal, so that an adapter moves them."""
    if tensor is None or not tensor.is_floating_point() or not tensor.numel():
        return False
    return bool((tensor == tensor.flatten()[0]).all())


def _identical(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same type, shape and elements, which may be NaN."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return torch.equal(one.double().nan_to_num(), other.double().nan_to_num())


def _close(one: Tensor, other: Tensor) -> bool:
    """Whether two results differ by no more than another order of sums explains."""
    if one.dtype != other.dtype or one.shape != other.shape or not one.is_floating_point():
        return False
    first, second = one.double().nan_to_num(), other.double().nan_to_num()
    size = float(first.square().mean().sqrt())
    return float((first - second).abs().max()) <= _ROUNDINGS * torch.finfo(one.dtype).eps * size
