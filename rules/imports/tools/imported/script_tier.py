"""Tasks whose own script decides about a candidate: tier ``script``.

For each call the script runs twice on the judge's side. First it makes the arguments, with a
stand-in for the module; the candidate computes its results elsewhere. Then it runs under the same
seed again, with these results instead of the module's, and its answer is the verdict.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from imported.boundary import LeftOutError
from imported.devices import UNWRITTEN
from imported.functions import placed, tensors
from imported.modules import first_line, identical
from imported.script_declared import Told, declaration, floats_of, shapes_of
from imported.script_results import close
from imported.script_setting import tensors_on_a_gpu
from imported.script_stage import Seen, results
from imported.script_tasks import Learning
from imported.scripts import AGAIN, Script
from imported.seeding import seed_all

TIER = "script"

_FORGIVEN = {
    "ARGUMENT_NOT_A_DIM",
    "DOES_NOT_RUN",
    "OUTPUT_UNCHECKED",
    "REFERENCE_DIFFERS",
    "SEVERAL_CALLS",
    "SIZES_DRAWN",
}
"""Classes of tasks that a script can judge all the same."""

_TRIES = 400
"""The most draws to find one with the declared sizes."""

_seeds: dict[bytes, int] = {}
"""By the digest of a call's tensors, the seed that the script made them under."""


def learn(script: Script) -> tuple[dict[str, Any], Told]:
    """The declaration of a task, and the facts for its reference. Raises LeftOutError."""
    learning = Learning(script)
    try:
        return learning.learn()
    except LeftOutError as error:
        if error.reason not in _FORGIVEN:
            raise
    return _judged_by_script(learning)


def draw(script: Script, told: Told, device: str) -> dict[str, Tensor]:
    """The tensors of a call with the declared sizes, from the script under the global seed."""
    shapes = {name: tuple(sizes) for name, sizes in told["shapes"].items()}
    seen, seed = _steady(script, told["settings"], device, shapes)
    found = tensors(seen.values)
    drawn = {name: found[name] for name in told["inputs"]}
    _seeds[_digest(drawn)] = seed
    return drawn


def original(script: Script, told: Told, given: Mapping[str, Any]) -> dict[str, Tensor]:
    """What the original kernel computes from the tensors of ``given``, in its own precision."""
    kinds = {name: getattr(torch, kind) for name, kind in told["kinds"].items()}
    inputs = {name: given[name].detach().to(kind) for name, kind in kinds.items()}
    device = str(next(iter(inputs.values())).device)
    call = _call(script, told["seed"], device, tuple(told["settings"].items()))
    values = {name: placed(value, name, inputs) for name, value in call.values.items()}
    with tensors_on_a_gpu(device):
        function = getattr(_module(script, device), call.entry)
        outcome = results((function[call.grid] if call.grid else function)(**values))
    left = tensors(values)
    return {n: left[n] if n in told["updates"] else outcome[n] for n in _compared(told)}


def verdict(
    script: Script, told: Told, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor],
    truth: Mapping[str, Tensor],
) -> str:  # fmt: skip
    """What is wrong with the results of a call, by the script; ``""`` for nothing.

    ``truth`` has the original's results: what the script does not look at has to be near them, and
    numbers where they are. No result is right for inputs that the script did not draw.
    """
    seed = _seeds.get(_digest({name: inputs[name] for name in told["inputs"]}))
    if seed is None:
        return "its script did not draw these inputs, and cannot judge their results"
    for name, tensor in outputs.items():
        if not truth[name].is_floating_point():
            continue
        finite, known = (one.double().isfinite() for one in (tensor, truth[name]))
        if bool((known & ~finite).any()):
            return f"'{name}' is not finite where the original's is"
    for name in told["unchecked"]:
        if not close(outputs[name], truth[name]):
            return f"'{name}', which the script does not look at, is not what the original gives"
    device = str(next(iter(inputs.values())).device)
    if script.beside(device):
        outputs = {name: tensor.cpu() for name, tensor in outputs.items()}
    return _said(script, told["settings"], device, seed, outputs)


def _judged_by_script(learning: Learning) -> tuple[dict[str, Any], Told]:
    script, sizes = learning.script, learning.base
    shapes = shapes_of(learning.first)
    (one, _), (seen, seed) = (_steady(script, sizes, "cpu", shapes, start) for start in (1, 10**6))
    if floats_of(one) != floats_of(seen):
        raise LeftOutError("ARGUMENT_NOT_A_DIM", "it passes a number that is drawn")
    given, others = tensors(seen.values), tensors(one.values)
    if all(identical(given[name], others[name]) for name in given):
        what = "its script draws nothing: it calls the module with the same numbers each time"
        raise LeftOutError("VALUES_FIXED", what)
    right, stale = _computed(learning, seen), _computed(learning, one)
    updates = [n for n in given if any(not identical(c[n], t[n]) for c, t in (
        (right, given), (stale, others)))]  # fmt: skip
    outputs = [name for name in right if name not in given]
    known = {name: right[name] for name in (*outputs, *updates)}

    def said(replies: Mapping[str, Tensor]) -> str:
        return _said(script, sizes, "cpu", seed, {**known, **replies})

    wrong = said({})
    if wrong == AGAIN:
        raise LeftOutError("SEVERAL_CALLS", "its check calls the module more than once")
    if wrong:
        raise LeftOutError("REFERENCE_DIFFERS", f"its script refuses its own kernel: {wrong}"[:200])
    unchecked = [name for name in known if not said({name: _garbage(known[name])})]
    if unwritten := _unwritten(learning, seen, unchecked):
        what = f"its script does not look at '{unwritten[0]}', which its kernel writes in part"
        raise LeftOutError("OUTPUT_UNCHECKED", what)
    fakes = {
        "zeros": {name: torch.zeros_like(t) for name, t in known.items()},
        "the results of another call": {name: stale[name] for name in known},
    }
    for what, fake in fakes.items():
        if not all(identical(fake[n], known[n]) for n in known) and not said(fake):
            raise LeftOutError("CHECK_FOOLED", f"its script accepts {what}")
    told: Told = {
        "tier": TIER,
        "dims": {},
        "settings": dict(sizes),
        "seed": seed,
        "inputs": [*given],
        "outputs": outputs,
        "updates": updates,
        "unchecked": unchecked,
        "kinds": {name: str(t.dtype).removeprefix("torch.") for name, t in given.items()},
        "shapes": {name: list(shape) for name, shape in shapes.items()},
        "stepped": {},
    }
    space, _ = learning.explored([])
    attrs = declaration(learning.first, space, told, [])
    return {**attrs, "tier": TIER, "correctness": {"distributions": ["default"]}}, told


def _computed(learning: Learning, seen: Seen, unwritten: float = UNWRITTEN) -> dict[str, Tensor]:
    """What the kernel returns in memory of its own, and what it leaves in its arguments."""
    outcome, left = learning.run(seen, unwritten)
    held = {t.untyped_storage().data_ptr() for t in left.values()}
    named = results(outcome).items()
    return {**{n: t for n, t in named if t.untyped_storage().data_ptr() not in held}, **left}


def _unwritten(learning: Learning, seen: Seen, names: Sequence[str]) -> list[str]:
    """The results that depend on what their memory held before."""
    ran = [_computed(learning, seen, value) for value in (0.0, UNWRITTEN)]
    return [name for name in names if not identical(ran[0][name], ran[1][name])]


def _steady(
    script: Script, sizes: Mapping[str, int], device: str, shapes: Mapping[str, Any], start: int = 0
) -> tuple[Seen, int]:
    """The first draw with these shapes, and its seed, from ``start`` or the global one on."""
    start = start or torch.initial_seed() % 2**30
    for seed in range(start, start + _TRIES):
        seed_all(seed)
        seen = script.watch(sizes, device, briefly=True)
        if shapes_of(seen) == shapes:
            return seen, seed
    what = f"its sizes are drawn, and {_TRIES} draws did not have the same twice"
    raise LeftOutError("SIZES_DRAWN", what)


def _said(
    script: Script, sizes: Mapping[str, int], device: str, seed: int, replies: Mapping[str, Tensor]
) -> str:
    with torch.random.fork_rng([device] if device.startswith("cuda") else []):
        seed_all(seed)
        try:
            seen = script.watch(sizes, device, replies=replies)
        except Exception as error:  # noqa: BLE001 - whatever the script raises for such results
            return first_line(error)
    return seen.error if seen.entry else "it calls nothing"


def _compared(told: Told) -> list[str]:
    return [*told["outputs"], *told["updates"]]


def _garbage(like: Tensor) -> Tensor:
    """Other values than a kernel computes, none of them special."""
    if like.dtype is torch.bool:
        return ~like
    moved = like.double().nan_to_num(posinf=0.0, neginf=0.0) * 3 + 7
    return moved.clamp(-100, 100).to(like.dtype)


def _digest(given: Mapping[str, Tensor]) -> bytes:
    total = hashlib.blake2b(digest_size=16)
    for name, tensor in given.items():
        total.update(name.encode())
        content = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
        total.update(content.cpu().numpy().tobytes())
    return total.digest()


@cache
def _call(script: Script, seed: int, device: str, sizes: tuple[tuple[str, int], ...]) -> Seen:
    """A call, for the arguments that are not tensors."""
    with torch.random.fork_rng([device] if device.startswith("cuda") else []):
        seed_all(seed)
        return script.watch(dict(sizes), device, briefly=True)


@cache
def _module(script: Script, device: str) -> Any:
    return script.module(run=True, device=device)
