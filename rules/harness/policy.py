"""A task's policies for its gates, checked when the task is loaded."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any

from kabuild.rule import AttributeProblem, PlatformSpec, suggest

from .names import check_name
from .terms import DISTRIBUTIONS, DTYPES, TF32, CorrectnessPolicy, PerfPolicy, UnseenPolicy, gates

_POLICIES = {
    gates.CORRECTNESS: CorrectnessPolicy(),
    gates.PERF: PerfPolicy(),
    gates.UNSEEN: UnseenPolicy(),
}
KEYS: Mapping[str, Mapping[str, type]] = {
    gate: {field.name: type(getattr(policy, field.name)) for field in dataclasses.fields(policy)}
    for gate, policy in _POLICIES.items()
}
"""The names and types of the settings in each gate's policy."""

_RANGES: Mapping[str, tuple[float, float]] = {
    "baseline_factor": (0, 1000),
    "budget_seconds": (0, 3600),
    "call_seconds": (0.001, 600),
    "clock_ms": (0, 60_000),
    "clock_share": (0, 1),
    "cycles": (1, 1000),
    "draw": (0, 2**63 - 1),
    "edges": (0, 1000),
    "half_width": (0.0001, 10),
    "machine_spread": (0, 1),
    "max_processes": (3, 1000),
    "max_slots": (1, 65_536),
    "memory_bytes": (1, 2**40),
    "memory_share": (0.001, 1),
    "min_batch_ms": (0.001, 60_000),
    "processes": (3, 1000),
    "readings": (1, 100),
    "reduced_elements": (0, 2**40),
    "repeats": (2, 1000),
    "samples": (2, 10_000),
    "total_seconds": (0.001, 600),
    "waiting_spread": (0, 1),
}
"""The valid range of each number, both ends included."""

_LOOSEST = 1000.0
"""Limit on tolerances: a larger one accepts every result."""

_MOST_DISTRIBUTIONS = 100
_WORDS = {dict: "a table", tuple: "a list of names", bool: "true or false", int: "an integer"}
_TOLERANCE_HINT = "write tolerance = { f16 = { atol = 1e-3, rtol = 1e-3 } }"


def check_policies(attrs: Mapping[str, Any]) -> None:
    """Refuse unknown names and invalid values. Raises AttributeProblem."""
    _check_tolerance(attrs["tolerance"], ("tolerance",))
    _check_distributions(attrs["distributions"])
    for gate in KEYS:
        for name, value in attrs[gate].items():
            _check_key(gate, name, value)
        least = attrs[gate].get("processes", 0)
        if attrs[gate].get("max_processes", least) < least:
            raise AttributeProblem(
                "'max_processes' is less than 'processes'", (gate, "max_processes")
            )
    known = (*DISTRIBUTIONS, *attrs["distributions"])
    for gate in (gates.CORRECTNESS, gates.PERF):
        for index, name in enumerate(attrs[gate].get("distributions", ())):
            if name not in known:
                raise AttributeProblem(
                    f"unknown distribution '{name}'",
                    (gate, "distributions", index),
                    _hint(str(name), known),
                )


def gate_policy(attrs: Mapping[str, Any], gate: str, platform: PlatformSpec) -> dict[str, Any]:
    """The policy of one gate: its own table, completed by the task's.

    A dtype's tolerance in the gate's own table wins over the task's. The task's own
    distributions follow the built-in ones, unless the gate's table lists the distributions to try.
    Perf's are those of correctness.
    """
    policy = dict(attrs[gate])
    tolerance = {**attrs["tolerance"], **policy.get("tolerance", {})}
    if attrs["tf32"] and platform.tf32:
        f32 = tolerance.get("f32", {})
        least = dataclasses.asdict(TF32)
        tolerance["f32"] = {name: max(least[name], f32.get(name, 0.0)) for name in least}
    if tolerance:
        policy["tolerance"] = tolerance
    if gate == gates.CORRECTNESS and attrs["distributions"]:
        policy.setdefault("distributions", [*DISTRIBUTIONS, *attrs["distributions"]])
    if gate == gates.PERF and (listed := attrs["correctness"].get("distributions")):
        policy.setdefault("distributions", listed)
    return policy


def _check_key(gate: str, name: str, value: Any) -> None:
    path = (gate, name)
    wanted = KEYS[gate].get(name)
    if wanted is None:
        others = [other for other in KEYS if name in KEYS[other]]
        hint = f"the gate '{others[0]}' has it" if others else _hint(name, KEYS[gate])
        raise AttributeProblem(f"'{gate}' has no policy '{name}'", path, hint)
    if wanted in {int, float}:
        _check_number(name, value, wanted, path)
    elif type(value) is not (list if wanted is tuple else wanted):
        raise AttributeProblem(f"'{name}' is {value!r}, which is not {_WORDS[wanted]}", path)
    elif wanted is tuple and not value:
        raise AttributeProblem(f"'{name}' is empty: list at least one", path)
    if name == "tolerance":
        _check_tolerance(value, path)


def _check_number(name: str, value: Any, wanted: type, path: tuple[str, ...]) -> None:
    low, high = _RANGES[name]
    words = _WORDS[int] if wanted is int else "a number"
    if type(value) not in {int, wanted}:
        raise AttributeProblem(f"'{name}' is {value!r}, which is not {words}", path)
    if not low <= value <= high:  # also catches NaN
        raise AttributeProblem(
            f"'{name}' is {_short(value)}, expected {words} from {low:,} to {high:,}", path
        )


def _short(number: float) -> str:
    """A number of any size in a few characters: integers of TOML have no limit."""
    if abs(number) < 10**18 or number in {math.inf, -math.inf}:
        return str(number)
    return f"{float(max(min(number, 10**300), -(10**300))):.3g}"


def _check_distributions(names: tuple[str, ...]) -> None:
    path = ("distributions",)
    if len(names) > _MOST_DISTRIBUTIONS:
        what = f"{len(names)} distributions: at most {_MOST_DISTRIBUTIONS} can be tried"
        raise AttributeProblem(what, path)
    for index, name in enumerate(names):
        check_name(name, "name of a distribution", (*path, index))
        if name in DISTRIBUTIONS:
            raise AttributeProblem(f"distribution '{name}' is always tried", (*path, index))
        if name in names[:index]:
            raise AttributeProblem(f"distribution '{name}' is declared twice", (*path, index))


def _check_tolerance(value: Mapping[str, Any], path: tuple[str, ...]) -> None:
    for dtype, bound in value.items():
        if dtype not in DTYPES:
            raise AttributeProblem(
                f"unknown dtype '{dtype}'", (*path, dtype), f"known: {', '.join(DTYPES)}"
            )
        if not isinstance(bound, Mapping):
            raise AttributeProblem(f"{bound!r} is not a tolerance", (*path, dtype), _TOLERANCE_HINT)
        for name, number in bound.items():
            if name not in {"atol", "rtol"}:
                raise AttributeProblem(
                    f"a tolerance has no '{name}'", (*path, dtype, name), _TOLERANCE_HINT
                )
            if type(number) not in {int, float} or not 0 <= number <= _LOOSEST:
                raise AttributeProblem(
                    f"'{name}' is {number!r}, expected a number from 0 to {_LOOSEST:g}",
                    (*path, dtype, name),
                )


def _hint(name: str, known: Iterable[str]) -> str:
    names = tuple(known)
    return suggest(name, names) or f"known: {', '.join(names)}"
