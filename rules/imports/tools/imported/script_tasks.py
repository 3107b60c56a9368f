"""What a task is whose script compares the results of one call with what it expects."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from imported.boundary import Arguments, LeftOutError, declared, integers_of
from imported.functions import sized, tensors
from imported.modules import first_line, identical
from imported.script_stage import Seen, results
from imported.scripts import Script
from imported.shape_space import FIXED, INTEGERS, Shapes, Space, explore

LOOSE = 0.03
"""How far a kernel may be from what its script expects, of the value and of the typical value."""

ROUNDS = 3
"""How often a shape space is searched, each time with fewer dims."""

SEEDS = 8
"""With which a script is run, to find out whether it draws sizes."""

Told = dict[str, Any]
Sizes = Mapping[str, int]


def learn_script(script: Script) -> tuple[dict[str, Any], Told]:
    """The declaration of a task, and what ``inputs`` and ``reference`` are told.

    Its kernel is run in Triton's interpreter and compared with what its script expects of the same
    arguments, at the sizes that bound the shape space. Raises LeftOutError.
    """
    return _Learning(script).learn()


def drawn(script: Script, told: Told, config: Mapping[str, Any], device: str) -> dict[str, Tensor]:
    """The tensors of a call, from the script under the seed of the global generator."""
    found = tensors(script.watch(sized(told, config), device).values)
    return {name: found[name] for name in told["inputs"]}


def expected(script: Script, told: Told, given: Mapping[str, Any]) -> dict[str, Tensor]:
    """What the script expects of a call with the tensors of ``given``."""
    device = str(given[told["inputs"][0]].device)
    seen = script.watch(
        sized(told, given),
        device,
        given=given,
        updates=told["updates"],
        matches=told["matches"],
        exact=told["exact"],
    )
    answers = {name: seen.answers[index] for name, index in told["answers"].items()}
    found = {**seen.expected, **answers}
    return {name: found[name] for name in (*told["outputs"], *told["updates"])}


class _Learning:
    def __init__(self, script: Script) -> None:
        self._script = script
        self._base, self._cases = script.sizes()
        self._first = self._watch(self._base)
        if not self._first.entry:
            why = f"its script calls no function with tensors: {self._first.error}"[:200]
            raise LeftOutError("NO_ENTRY", why)
        if self._first.raised:
            why = f"its module fails on a CPU: {self._first.raised}"
            raise LeftOutError("NEEDS_GPU", why)
        self._check_sizes()
        importlib.import_module("imported.stand_in")
        self._module = script.module(run=True)
        self._told: Told = {}
        self._known: dict[tuple[str, ...], Space] = {}

    def learn(self) -> tuple[dict[str, Any], Told]:
        """Search the space, without dims that its kernel or script does not bear."""
        names = [name for name in self._base if not FIXED.search(name)]
        for _ in range(ROUNDS if self._fits(names) else 0):
            space, members = self._explored(names)
            small = space.small
            try:
                self._prove({**self._base, **self._sizes(small, members)})
            except LeftOutError:
                if not names:
                    raise
                self._prove(self._base)  # else there is nothing to be kept
                space = replace(
                    space,
                    dims=tuple(
                        replace(d, small=d.original, low=d.original, high=d.original + d.step)
                        for d in space.dims
                    ),
                )
            wrong = self._unborne(space, members)
            if not wrong:
                return self._told_of(space, members)
            names = [name for name in names if name not in wrong]
        space, members = self._explored([])
        self._prove(self._base)
        return self._told_of(space, members)

    def _check_sizes(self) -> None:
        """Raises LeftOutError where sizes depend on what is drawn."""
        first = _shapes(self._first)
        if any(_shapes(self._watch(self._base, seed)) != first for seed in range(2, 2 + SEEDS)):
            raise LeftOutError("SIZES_DRAWN", "it draws sizes together with values")

    def _fits(self, names: list[str]) -> bool:
        """Whether the call can be declared with these dims."""
        try:
            space, members = self._explored(names)
            self._told = {"updates": [], "matches": {}, "exact": True, "outputs": [], "answers": {}}
            self._told_of(space, members)
        except LeftOutError:
            return False
        return True

    def _watch(self, sizes: Sizes, seed: int = 1, **more: Any) -> Seen:
        torch.manual_seed(seed)
        return self._script.watch(sizes, "cpu", **more)

    def _explored(self, names: list[str]) -> tuple[Space, dict[str, list[str]]]:
        taken = {name.lower() for name in (*self._first.values, *tensors(self._first.values))}
        shown = [f"{name}_size" if name.lower() in taken else name for name in names]
        values = [self._base[name] for name in names]

        def probe(moved: Any) -> Shapes | None:
            try:
                sizes = {**self._base, **dict(zip(names, moved, strict=True))}
                return _shapes(self._watch(sizes))
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

    def _bears(self, dims: Sizes, members: Mapping[str, list[str]]) -> bool:
        try:
            self._prove({**self._base, **self._sizes(dims, members)})
        except LeftOutError:
            return False
        return True

    def _prove(self, sizes: Sizes) -> None:
        """Compare the kernel with the script. Raises LeftOutError."""
        seen, again = self._watch(sizes), self._watch(sizes, 2)
        if not seen.entry or not again.entry:
            raise LeftOutError("DOES_NOT_RUN", f"its script fails: {seen.error}"[:200])
        if _shapes(seen) != _shapes(again):
            raise LeftOutError("SIZES_DRAWN", "it draws sizes together with values")
        given = tensors(seen.values)
        outcome, left = self._run(seen)
        updates = [name for name in given if not identical(given[name], left[name])]
        held = {t.untyped_storage().data_ptr() for t in left.values()}
        named = results(outcome)
        fresh = {n: t for n, t in named.items() if t.untyped_storage().data_ptr() not in held}
        wrong = LeftOutError("DOES_NOT_RUN", "")
        for exact in (True, False):
            told = {"updates": updates, "matches": seen.matches, "exact": exact}
            kinds = {
                n: t.double() if exact and t.is_floating_point() else t for n, t in given.items()
            }
            said = self._watch(sizes, 2, given=kinds, **told)
            try:
                self._told = {**told, **_compared(fresh, {n: left[n] for n in updates}, said)}
            except LeftOutError as error:
                wrong = error
            else:
                return
        raise wrong

    def _run(self, seen: Seen) -> tuple[Any, dict[str, Tensor]]:
        values = _copies(seen.values)
        try:
            outcome = getattr(self._module, seen.entry)(**values)
        except Exception as error:  # noqa: BLE001 - whatever the benchmark's code raises
            why = f"its kernel fails in Triton's interpreter: {first_line(error)}"
            raise LeftOutError("NEEDS_GPU", why) from None
        return outcome, tensors(values)

    def _told_of(self, space: Space, members: dict[str, list[str]]) -> tuple[dict[str, Any], Told]:
        dims = {name for names in members.values() for name in names}
        told = {
            **self._told,
            "dims": members,
            "settings": {n: v for n, v in self._base.items() if n not in dims},
            "inputs": [*tensors(self._first.values)],
        }
        return {**self._attributes(space, told), **self._configs(space, told)}, told

    def _attributes(self, space: Space, told: Told) -> dict[str, Any]:
        shown = self._first
        said = Arguments(iter(space.shapes[f"{INTEGERS}in"]))
        parts = [f"{name}={said.text(value, name)}" for name, value in shown.values.items()]
        outputs = results(shown.result)
        targets = "y" if isinstance(shown.result, Tensor) else ", ".join(_targets(shown, told))
        call = f"{shown.entry}({', '.join(parts)})"
        return {
            "call": f"{targets} = {call}" if told["outputs"] else call,
            "inputs": {
                n: declared(t, space.shapes[f"tensors.{n}"]) for n, t in said.tensors.items()
            },
            "updates": told["updates"],
            "outputs": {
                n: declared(outputs[n], space.shapes[f"outputs.{n}"]) for n in told["outputs"]
            },
            "scalars": dict(said.scalars),
            **space.attributes(),
        }

    def _configs(self, space: Space, told: Told) -> dict[str, Any]:
        """The script's cases that the space has."""
        found = []
        high = {dim.name: dim.high for dim in space.dims}
        for case in self._cases:
            config = {dim: case[names[0]] for dim, names in told["dims"].items()}
            fits = all(d.low <= config[d.name] and not config[d.name] % d.step for d in space.dims)
            if fits and sized(told, config) == case and config not in found:
                found.append(config)
                high = {name: max(value, config[name]) for name, value in high.items()}
        if not found:
            return {}
        return {
            "configs": found,
            "dims": {d.name: f"{d.low}..{high[d.name]}" for d in space.dims},
        }


def _targets(seen: Seen, told: Told) -> list[str]:
    """What is done with each part of a result that is a tuple."""
    if not isinstance(seen.result, list | tuple):
        return ["_"]
    names = [f"y{index}" for index in range(len(seen.result))]
    return [name if name in told["outputs"] else "_" for name in names]


def _shapes(seen: Seen) -> Shapes:
    found = {f"tensors.{n}": tuple(t.shape) for n, t in tensors(seen.values).items()}
    found.update((f"outputs.{n}", tuple(t.shape)) for n, t in results(seen.result).items())
    return {**found, f"{INTEGERS}in": (*integers_of(list(seen.values.values())),)}


def _copies(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, list | tuple):
        return type(value)(_copies(item) for item in value)
    if isinstance(value, dict):
        return {key: _copies(item) for key, item in value.items()}
    return value


def _compared(
    fresh: Mapping[str, Tensor], changed: Mapping[str, Tensor], said: Seen
) -> dict[str, Any]:
    """Which results are outputs, and where their expected values are. Raises LeftOutError."""
    if said.other:
        raise LeftOutError("SEVERAL_CALLS", f"its check calls '{said.other}', too")
    computed = {**fresh, **changed}
    answers = _answers(computed, said)
    known = {*said.expected, *answers}
    outputs = [name for name in fresh if name in known]
    unseen = [name for name in changed if name not in known]
    if unseen or not (outputs or changed):
        what = f"what the call leaves in '{unseen[0]}'" if unseen else "a result of the call"
        raise LeftOutError(
            "OUTPUT_UNCHECKED", f"its script compares {what} with no tensor as a whole"
        )
    for name in (*outputs, *changed):
        if name not in answers and not _close(computed[name], said.expected[name]):
            what = f"its kernel's '{name}' is not what its script expects of the same arguments"
            raise LeftOutError("REFERENCE_DIFFERS", what)
    return {"outputs": outputs, "answers": answers}


def _answers(computed: Mapping[str, Tensor], said: Seen) -> dict[str, int]:
    """Where the script's own functions answer for what it compares in part, or not at all."""
    found = {}
    for name, tensor in computed.items():
        if name in said.expected and _close(tensor, said.expected[name]):
            continue
        equal = (i for i, answer in enumerate(said.answers) if _close(tensor, answer))
        if (index := next(equal, None)) is not None:
            found[name] = index
    return found


def _close(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape:
        return False
    if not one.is_floating_point():
        return bool((one.double() == other.double()).all())
    a, b = one.double(), other.double()
    finite = b.isfinite()
    typical = b[finite].square().mean().sqrt() if bool(finite.any()) else torch.zeros(())
    allowed = LOOSE * (b.abs() + typical)
    near = (a - b).abs() <= allowed
    return bool((near | ~finite & ((a == b) | (a.isnan() & b.isnan()))).all())
