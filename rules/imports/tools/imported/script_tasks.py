"""Learns a task whose script compares the results of one call with what it expects."""

from __future__ import annotations

import importlib
import itertools
import math
import random
import re
import time
import types
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from imported.boundary import LeftOutError
from imported.devices import UNWRITTEN, FilledMemory
from imported.fitting import evaluate
from imported.functions import sized, tensors
from imported.modules import first_line, identical
from imported.precision import ENOUGH, excess
from imported.script_declared import Told, declaration, floats_of, shapes_of
from imported.script_results import compared
from imported.script_stage import Seen, copied, results
from imported.scripts import Script
from imported.shape_space import FIXED, Shapes, Space, between, explore

_ADDRESS = re.compile(r"\bbyte -?\d+ of '\w*' \(\d+ bytes\)")
"""What is next to where a kernel reads that takes integers for addresses: by chance."""

_HALF = (torch.float16, torch.bfloat16)

ROUNDS = 3
"""How often a shape space is searched, each time with fewer dims."""

SEEDS = 8
"""Seeds under which a script is run, to find out whether it draws sizes."""

FEWEST = 3
"""The fewest of these seeds, for slow scripts."""

SAMPLES = 3
"""How many configs are drawn for each dim, besides those at the ends of the ranges."""

FURTHEST = 4
"""How many times a dim's own size is tried, where a case of the script has as much."""

MOST_STEPS = 1_000_000
"""The most functions of PyTorch's that a script may run at one of its cases: some seconds."""

LONGEST = 30.0
"""Seconds of computing, after which no further sizes are tried: the script's own stay."""

Sizes = Mapping[str, int]


def drawn(script: Script, told: Told, config: Mapping[str, Any], device: str) -> dict[str, Tensor]:
    """The tensors of a call, from the script under the seed of the global generator."""
    found = tensors(script.watch(sized(told, config), device, briefly=True).values)
    return {name: found[name] for name in told["inputs"]}


def expected(script: Script, told: Told, given: Mapping[str, Any]) -> dict[str, Tensor]:
    """What the script expects of a call with the tensors of ``given``."""
    device = str(given[told["inputs"][0]].device)
    if script.beside(device):
        near = {name: v.cpu() if isinstance(v, Tensor) else v for name, v in given.items()}
        return {name: t.to(device) for name, t in expected(script, told, near).items()}
    seen = script.watch(
        sized(told, given),
        device,
        given=given,
        updates=told["updates"],
        matches=told["matches"],
        exact=told["exact"],
        early=told["early"],
    )
    places = {n: at for n, at in told["answers"].items() if at < len(seen.answers)}
    answers = {name: seen.answers[at] for name, at in places.items()}
    found = {**seen.expected, **answers}
    if missing := [name for name in (*told["outputs"], *told["updates"]) if name not in found]:
        raise RuntimeError(f"its script did not compare '{missing[0]}': {seen.error}")
    kinds = {name: getattr(torch, kind) for name, kind in told["stepped"].items()}
    rounded = {name: found[name].round().to(kind) for name, kind in kinds.items()}
    updated = {name: _like(given[name], found[name]) for name in told["updates"]}
    names = (*told["outputs"], *told["updates"])
    return {name: {**found, **updated, **rounded}[name] for name in names}


def _like(given: Tensor, expected: Tensor) -> Tensor:
    """What is expected of a tensor, in its precision if a script compares it with whole numbers."""
    if given.is_floating_point() and not expected.is_floating_point():
        return expected.to(given.dtype)
    return expected


class Learning:
    """What a script passes to its module, and whether it compares what the module computes.

    Attributes:
        base: the sizes of the script's first case.
        first: what the script shows at these.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self._began = time.process_time()
        self.base, self._cases = script.sizes()
        self.first = self.watch(self.base, briefly=True)
        if not self.first.entry:
            why = f"its script calls no function with tensors: {self.first.error}"[:200]
            raise LeftOutError("NO_ENTRY", why)
        if self.first.raised:
            why = f"its module fails on a CPU: {self.first.raised}"
            raise LeftOutError("NEEDS_GPU", why)
        with torch.device("cpu"):  # PyTorch finds out which functions obey that: once, and now
            torch.empty(0)
        importlib.import_module("imported.stand_in")  # replaces some of them
        self._module = self._loaded()
        self._told: Told = {}
        self._updates: list[str] = []
        self._off = 0.0
        self._steps = math.inf  # for each element of the arguments
        self._ways = [*itertools.product((True, False), (False, True))]
        self._known: dict[tuple[str, ...], Space] = {}

    def learn(self) -> tuple[dict[str, Any], Told]:
        """The declaration of the task, and the facts for ``inputs`` and ``reference``.

        The kernel is run in Triton's interpreter and compared with what the script expects of the
        same arguments, at the sizes that bound the shape space: without dims that kernel or script
        do not bear. Raises LeftOutError.
        """
        self._check_sizes()
        strided = any(not t.is_contiguous() for t in tensors(self.first.values).values())
        names = [name for name in self.base if not FIXED.search(name) and not strided]
        for _ in range(ROUNDS if self._fits(names) else 0):
            try:
                space, members = self.explored(names)
            except LeftOutError:
                break
            small = space.small
            try:
                self._prove({**self.base, **self._sizes(small, members)})
            except LeftOutError:
                if not names:
                    raise
                self._prove(self.base)  # else there is nothing to be kept
                space = replace(
                    space,
                    dims=tuple(
                        replace(d, small=d.original, low=d.original, high=d.original + d.step)
                        for d in space.dims
                    ),
                )
            if not (wrong := self._unborne(space, members) or self._strays(space, members)):
                return self._told_of(space, members)
            names = [name for name in names if name not in wrong]
        space, members = self.explored([])
        self._prove(self.base)
        return self._told_of(space, members)

    @property
    def _late(self) -> bool:
        """Whether no further sizes are to be tried."""
        return time.process_time() - self._began > LONGEST

    def _loaded(self) -> types.ModuleType:
        try:
            return self.script.module(run=True)
        except Exception as error:  # noqa: BLE001 - whatever the benchmark's code raises
            why = f"its file cannot be imported on a CPU: {first_line(error)}"
            raise LeftOutError("NEEDS_GPU", why) from None

    def _check_sizes(self) -> None:
        """Raises LeftOutError where sizes depend on what is drawn."""
        first = shapes_of(self.first)
        for seed in range(2, 2 + SEEDS):
            if shapes_of(self.watch(self.base, seed, briefly=True)) != first:
                raise LeftOutError("SIZES_DRAWN", "it draws sizes together with values")
            if self._late and seed >= 1 + FEWEST:
                break

    def _fits(self, names: list[str]) -> bool:
        """Whether the call can be declared with these dims."""
        try:
            space, members = self.explored(names)
            self._told = {
                "updates": [],
                "matches": {},
                "exact": True,
                "early": False,
                "outputs": [],
                "answers": {},
                "stepped": {},
            }
            self._told_of(space, members)
        except LeftOutError:
            return False
        return True

    def watch(self, sizes: Sizes, seed: int = 1, **more: Any) -> Seen:
        """The observations of a run of the script under a seed."""
        torch.default_generator.manual_seed(seed)  # no device's, which PyTorch would look for
        return self.script.watch(sizes, "cpu", **more)

    def explored(self, names: list[str]) -> tuple[Space, dict[str, list[str]]]:
        """The shape space of the sizes ``names``, and which sizes each dim is.

        Raises LeftOutError where there is no time left to search for it.
        """
        taken = {name.lower() for name in (*self.first.values, *tensors(self.first.values))}
        shown = [f"{name}_size" if name.lower() in taken else name for name in names]
        values = [self.base[name] for name in names]

        def probe(moved: Any) -> Shapes | None:
            if names and self._late:
                raise LeftOutError("TOO_SLOW", "its script takes too long to try other sizes")
            try:
                sizes = {**self.base, **dict(zip(names, moved, strict=True))}
                return shapes_of(self.watch(sizes, briefly=True))
            except Exception:  # noqa: BLE001 - whatever the script raises for these sizes
                return None

        space = self._known.get((*names,)) or explore(shown, values, probe)
        self._known[(*names,)] = space
        return space, {d.name: [names[i] for i in d.members] for d in space.dims}

    @staticmethod
    def _sizes(dims: Sizes, members: Mapping[str, list[str]]) -> dict[str, int]:
        return {name: dims[dim] for dim, names in members.items() for name in names}

    def _unborne(self, space: Space, members: Mapping[str, list[str]]) -> list[str]:
        """The sizes that cannot be moved to the bounds of the space, or a step from where they are.

        These are tried together first.
        """
        moves = [
            {d.name: d.small + d.step for d in space.dims},
            {d.name: d.low for d in space.dims},
        ]
        if all(self._bears({**space.small, **move}, members) for move in moves):
            return []
        found = [
            name
            for move in moves
            for dim, size in move.items()
            if not self._bears({**space.small, dim: size}, members)
            for name in members[dim]
        ]
        return found or [name for names in members.values() for name in names]

    def _strays(self, space: Space, members: Mapping[str, list[str]]) -> list[str]:
        """The sizes that cannot be chosen freely, as far as some configs show.

        Dims are added one by one, until the script fails, passes other shapes or numbers, or does
        not compare all that it compares at its own sizes.
        """
        free: list[str] = []
        base = {dim.name: dim.original for dim in space.dims}
        high = {
            dim.name: max(case[name] for case in self._cases for name in members[dim.name])
            for dim in space.dims
        }
        top = {
            d.name: max(d.original, min(high[d.name], FURTHEST * d.original)) for d in space.dims
        }
        began = time.process_time()
        for dim in space.dims:
            chosen = random.Random(dim.name)  # noqa: S311 - which configs are tried is not secret
            moving = [d for d in space.dims if d.name in {*free, dim.name}]
            lows = {**base, **{d.name: d.low for d in moving}}
            configs = [{**lows, d.name: top[d.name]} for d in moving]
            configs += [
                {**base, **{d.name: between(chosen, d.low, top[d.name], d.step) for d in moving}}
                for _ in range(SAMPLES)
            ]
            late = time.process_time() - began > LONGEST
            if not late and all(
                self._same(space, members, config, seed) for config in configs for seed in (3, 4)
            ):
                free.append(dim.name)
        return [name for dim, names in members.items() if dim not in free for name in names]

    def _same(self, space: Space, members: Mapping[str, list[str]], dims: Sizes, seed: int) -> bool:
        try:
            sizes = {**self.base, **self._sizes(dims, members)}
            seen = self.watch(sizes, seed, briefly=True)
            expected(
                self.script,
                {**self._told_of(space, dict(members))[1]},
                {**dims, **tensors(seen.values)},
            )
        except Exception:  # noqa: BLE001 - whatever the script raises for these sizes
            return False
        shapes = {
            key: tuple(evaluate(t, dims) for t in texts) for key, texts in space.shapes.items()
        }
        return shapes == shapes_of(seen) and floats_of(seen) == floats_of(self.first)

    def _bears(self, dims: Sizes, members: Mapping[str, list[str]]) -> bool:
        if self._late:
            return False
        try:
            self._prove({**self.base, **self._sizes(dims, members)})
        except LeftOutError:
            return False
        return True

    def _prove(self, sizes: Sizes) -> None:
        """Compare the kernel with the script. Raises LeftOutError.

        A way to run the script that failed where another one worked is not tried again: at other
        sizes, such as ones, it may work by chance.
        """
        seen, again = self.watch(sizes), self.watch(sizes, 2, briefly=True)
        if not seen.entry or not again.entry:
            raise LeftOutError("DOES_NOT_RUN", f"its script fails: {seen.error}"[:200])
        if shapes_of(seen) != shapes_of(again):
            raise LeftOutError("SIZES_DRAWN", "it draws sizes together with values")
        if any(floats_of(one) != floats_of(self.first) for one in (seen, again)):
            what = "it passes a number that follows from sizes, or is drawn"
            raise LeftOutError("ARGUMENT_NOT_A_DIM", what)
        given = tensors(seen.values)
        outcome, left = self.run(seen)
        changed = [name for name in given if not identical(given[name], left[name])]
        self._updates += [name for name in changed if name not in self._updates]
        updates = [name for name in given if name in self._updates]
        held = {t.untyped_storage().data_ptr() for t in left.values()}
        named = results(outcome)
        fresh = {n: t for n, t in named.items() if t.untyped_storage().data_ptr() not in held}
        wrong = LeftOutError("DOES_NOT_RUN", "")
        failed = []
        for exact, early in self._ways:
            told = {"updates": updates, "matches": seen.matches, "exact": exact, "early": early}
            kinds = {
                n: t.double() if exact and t.is_floating_point() else t for n, t in given.items()
            }
            said = self.watch(sizes, 2, given=kinds, **told)
            try:
                self._told = {**told, **compared(fresh, {n: left[n] for n in updates}, said)}
            except LeftOutError as error:
                wrong = error
                failed.append((exact, early))
            else:
                self._ways = [way for way in self._ways if way not in failed]
                self._measure({**fresh, **left}, said, exact=exact)
                elements = sum(tensor.numel() for tensor in given.values())
                self._steps = min(self._steps, said.steps / max(1, elements))
                return
        raise wrong

    def _measure(self, computed: Mapping[str, Tensor], said: Seen, *, exact: bool) -> None:
        """Record the kernel's error in single precision, in tolerances."""
        answers = {name: said.answers[at] for name, at in self._told["answers"].items()}
        known = {
            name: truth.double()
            for name, truth in {**said.expected, **answers}.items()
            if exact and computed[name].dtype is torch.float32 and name not in said.stepped
        }
        self._off = max(self._off, excess(computed, known))

    def run(self, seen: Seen, unwritten: float = UNWRITTEN) -> tuple[Any, dict[str, Tensor]]:
        """What the kernel returns for the script's arguments, and what these are afterwards.

        Memory that it allocates holds ``unwritten`` first. Raises LeftOutError.
        """
        values = copied(seen.values)
        try:
            function = getattr(self._module, seen.entry)
            with FilledMemory(unwritten):
                outcome = (function[seen.grid] if seen.grid else function)(**values)
        except Exception as error:  # noqa: BLE001 - whatever the benchmark's code raises
            said = _ADDRESS.sub("in none of its tensors", first_line(error))
            raise LeftOutError(
                "NEEDS_GPU", f"its kernel fails in Triton's interpreter: {said}"
            ) from None
        return outcome, tensors(values)

    def _told_of(self, space: Space, members: dict[str, list[str]]) -> tuple[dict[str, Any], Told]:
        dims = {name for names in members.values() for name in names}
        told = {
            **self._told,
            "dims": members,
            "settings": {n: v for n, v in self.base.items() if n not in dims},
            "inputs": [*tensors(self.first.values)],
        }
        most = MOST_STEPS / self._steps if self._steps else math.inf
        attrs = declaration(self.first, space, told, self._cases, most)
        return {**attrs, **self._tolerance()}, told

    def _tolerance(self) -> dict[str, Any]:
        """Half precision's tolerance, for kernels that round to it and return float32."""
        given = tensors(self.first.values).values()
        if self._off <= ENOUGH or not any(t.dtype in _HALF for t in given):
            return {}
        return {"tolerance": {"f32": {"atol": 1e-3, "rtol": 1e-3}}}
