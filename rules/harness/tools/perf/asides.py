"""Untimed batches among the timed ones: other values, other sizes, at random places.

A program must not be able to tell timed batches from untimed ones: it could be correct in the
untimed ones and cheat under the clock. So a timed process also gets untimed batches of the same
size, in which some calls use other distributions of values, and calls of other sizes in between.
All are verified like timed calls. Their places follow from a number drawn when judging starts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from base.program import CandidateFault, Config
from base.sampler import Ground
from base.seeds import Stream
from base.spec import Spec, largest_tensor
from correctness import edges
from terms.perf import PerfPolicy
from terms.policy import DEFAULT
from truth import distributions
from truth.assessment import Call, Tensors, larger
from truth.judge import Case, Judge

from perf.checking import Checking
from perf.verification import Verifier

STAGE = "asides"
SIZES = 4  # other sizes in one judging
KINDS_OF_SIZE = 5  # distributions on which the baseline is tried at each of them
LEAST = 5  # calls on other values for each config of a process: three processes cover all kinds
_ELEMENTS = {"hip": 4096, "torch": 4096, "python": 1024, "call": 4096}
_EXTENTS = {"hip": 512, "torch": 512, "python": 64, "call": 512}
_ELSEWHERE = (1 << 20, 1 << 16)
_SECONDS = 0.1  # of the host, for a call of another size
_QUICK_SECONDS = 2e-3  # of which most may not depend on the size
_MOST_SECONDS = 5.0  # of the host, for a call of another size that is made all the same
_TOGETHER = 1 << 24  # elements of the largest tensor, over all calls made in one batch
_AS_IT_IS, _REDUCED = 1 << 22, 1 << 20  # elements of the largest tensor of a config


def epoch(draw: int, number: int) -> int:
    """What the calls of round ``number`` share: those of a config have one state."""
    return draw << 16 | number


@dataclass(frozen=True)
class Aside:
    """Untimed calls of a config.

    Attributes:
        slack: by output, the baseline's error on such calls.
    """

    config: Config
    calls: Sequence[Call]
    slack: Mapping[str, float]


@dataclass(frozen=True)
class _Size:
    """A config without timed calls, and calls on which the baseline is correct."""

    config: Config
    calls: Sequence[Call]
    slack: Mapping[str, float]


class Asides:
    """The untimed batches that one judging mixes into its timed processes.

    Values and sizes are left out if the baseline is wrong on them or the oracle has no answer. The
    baseline's runner finds these beforehand, while nothing is timed.
    """

    def __init__(self, judge: Judge, spec: Spec, policy: PerfPolicy, draw: int) -> None:
        self._judge = judge
        known = {DEFAULT, *distributions.CHANGES}
        self._distributions = [n for n in policy.distributions if n in known] or [DEFAULT]
        self._spec = spec
        self._draw = draw
        self._kinds: dict[str, Sequence[str]] = {}
        self._sizes: Sequence[_Size] = ()
        self._verifier = Verifier(judge)
        self._checking = Checking(judge)

    def prepare(self) -> None:
        """Choose values and sizes. Raises MachineFault and TaskFault."""
        stream = Stream("asides", self._draw)
        tried = [DEFAULT, *(name for name in self._distributions if name != DEFAULT)]
        try:
            right = {
                dtype: self._preferred(list(self._found(config, tried)))
                for dtype, config in self._smallest().items()
            }
            for config in self._spec.configs:
                self._kinds[config.name] = stream.shuffled(right[config.dtype])
            found = []
            for config in self._other_sizes():
                kinds = stream.shuffled(self._distributions)[:KINDS_OF_SIZE]
                calls, slack = self._right(config, kinds)
                if self._judge.host_seconds(config) > _MOST_SECONDS:
                    continue  # the oracle would be as slow between the timed calls
                if calls:
                    found.append(_Size(config, calls, slack))
            self._sizes = found
        finally:
            self._judge.baseline.kill()

    def among(
        self, number: int, config: Config, most: int, part: int = 0, parts: int = 1
    ) -> list[Call]:
        """Up to ``most`` calls of a timed config on other values, for process ``number``.

        They go into batch ``part`` of the ``parts`` batches with such calls. Over all batches and
        processes, no distribution comes twice before each has come once.
        """
        kinds = self._kinds.get(config.name, ())
        if not kinds:
            return []
        first, before = self._first(number), part * most
        offset = number * parts * most + before
        return [
            self._judge.call(
                Case(
                    STAGE,
                    config,
                    kinds[(offset + i) % len(kinds)],
                    first + before + i,
                    epoch(self._draw, number),
                )
            )
            for i in range(most)
        ]

    def batches(self, config: Config, most: int) -> int:
        """The number of batches with calls on other values, at ``most`` such calls in each."""
        return -(-LEAST // most) if self._kinds.get(config.name) else 0

    def between(self, number: int, config: Config) -> Aside | None:
        """Calls of another size, for process ``number`` after the calls of ``config``.

        The baseline was correct on exactly these calls; it may be wrong on other draws of the same
        distribution. A program that compiles for each size on a device gets them after one config
        of each process only, chosen at random.
        """
        if not self._sizes or not self._affordable(number, config):
            return None
        stream = Stream("between", self._draw, number, config.name)
        size = stream.choice(self._sizes)
        calls = stream.shuffled(size.calls)[: stream.between(1, 3)]
        return Aside(size.config, calls, size.slack)

    def _affordable(self, number: int, config: Config) -> bool:
        program = self._spec.candidate
        if program.abi == "hip" or not program.on_device:
            return True
        return Stream("which", self._draw, number).choice(self._spec.configs).name == config.name

    def place(self, number: int, config: Config, batches: int, part: int = 0) -> int:
        """The number of timed batches before the untimed one; ``batches`` puts it last."""
        return Stream("place", self._draw, number, config.name, part).below(batches + 1)

    def mixed(self, number: int, config: Config, calls: Sequence[Call]) -> Sequence[Call]:
        """``calls`` in random order."""
        return Stream("order", self._draw, number, config.name).shuffled(calls)

    def _first(self, number: int) -> int:
        return epoch(self._draw, number) << 16

    def _smallest(self) -> dict[str, Config]:
        """By dtype, the timed config with the smallest tensors, reduced if they are large.

        A distribution on which the baseline is right there may still be one on which it is wrong
        at another size; a candidate need not be right on that either.
        """
        spec = self._spec

        def size(config: Config) -> int:
            return largest_tensor(spec.signature, config.dims)

        found = {c.dtype: c for c in sorted(spec.configs, key=size, reverse=True)}
        ground = Ground.of(spec)
        return {
            dtype: edges.reduced(config, ground, _REDUCED) if size(config) > _AS_IT_IS else config
            for dtype, config in found.items()
        }

    def _preferred(self, found: Sequence[tuple[Call, Mapping[str, float]]]) -> list[str]:
        """The distributions where the baseline's own error is allowed as it is, if they suffice.

        On the others, which are ill-conditioned, every call costs further runs of the oracle.
        """
        allowed = self._judge.assessor.allowed
        odd = [(call, off) for call, off in found if call.distribution != DEFAULT]
        plain = [
            call.distribution
            for call, off in odd
            if all(error <= allowed(name, off) for name, error in off.items())
        ]
        return plain if len(plain) >= LEAST else [call.distribution for call, _ in odd]

    def _other_sizes(self) -> list[Config]:
        """Small configs at the edges of the space, different in every judging."""
        spec = self._spec
        elements, extent = _ELSEWHERE
        abi = spec.candidate.abi
        if spec.platform == "cpu":
            elements, extent = _ELEMENTS[abi], _EXTENTS[abi]
        elif (most := self._affordable_elements()) < elements:
            elements, extent = max(_ELEMENTS[abi], most), _EXTENTS[abi]
        ground = Ground.of(spec)
        small = replace(
            ground, elements=min(elements, ground.elements), extent=min(extent, ground.extent)
        )
        return edges.edges(small, f"asides {self._draw}", SIZES + len(spec.space.dtypes))[-SIZES:]

    def _affordable_elements(self) -> int:
        """The elements of a tensor for which the host does not take longer than it should.

        A reference may go through them one by one.
        """
        most = sys.maxsize
        for config in self._smallest().values():
            case = Case(STAGE, config, DEFAULT, self._first(0))
            checking = self._checking.seconds(config, partial(self._judge.call, case))
            seconds = self._judge.host_seconds(config) + checking
            if seconds > _QUICK_SECONDS:
                size = largest_tensor(self._spec.signature, config.dims)
                most = min(most, int(size * _SECONDS / seconds))
        return most

    def _right(
        self, config: Config, kinds: Sequence[str]
    ) -> tuple[Sequence[Call], Mapping[str, float]]:
        """One call for each of ``kinds`` on which the baseline is correct, with its error."""
        right, slack = list[Call](), dict[str, float]()
        for call, off in self._found(config, kinds):
            right.append(call)
            slack = larger(slack, off)
        return right, slack

    def _found(
        self, config: Config, kinds: Sequence[str]
    ) -> Iterator[tuple[Call, Mapping[str, float]]]:
        """As ``_right``, one after the other: large calls do not all fit a device together."""
        at_once = len(kinds) if self._are_small(config, len(kinds)) else 1
        for first in range(0, len(kinds), at_once):
            yield from self._looked_at(self._asked(config, kinds[first : first + at_once]))

    def _looked_at(
        self, ran: Sequence[tuple[Call, Tensors | CandidateFault]]
    ) -> Iterator[tuple[Call, Mapping[str, float]]]:
        """The calls of a batch on which the baseline is correct, each with its error."""
        assessor = self._judge.assessor
        made = [(call, found) for call, found in ran if not isinstance(found, CandidateFault)]
        looks = self._verifier.look([call for call, _ in made], [found for _, found in made])
        for (call, outputs), look in zip(made, looks, strict=True):
            if not assessor.defined(call):
                continue
            if self._verifier.is_right(look, look.excess):
                yield call, look.excess
            else:
                off = assessor.excesses(call, outputs)
                if assessor.assess(call, outputs, off).ok:
                    yield call, off

    def _are_small(self, config: Config, calls: int) -> bool:
        """Whether this many calls fit into memory together; on a device many may not."""
        on_device = self._spec.candidate.on_device
        each = largest_tensor(self._spec.signature, config.dims) if on_device else 0
        return calls * each <= _TOGETHER

    def _asked(
        self, config: Config, kinds: Sequence[str]
    ) -> list[tuple[Call, Tensors | CandidateFault]]:
        """The baseline's results for one call of each kind, in one batch."""
        calls = [self._judge.call(Case(STAGE, config, kind, self._first(0))) for kind in kinds]
        ran = self._judge.baseline.run_each(config, [call.inputs for call in calls])
        return list(zip(calls, ran, strict=True))
