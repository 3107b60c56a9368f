"""A task's policies for its gates, checked when the task is loaded."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any

from kabuild.rule import AttributeProblem, suggest

from .terms import DISTRIBUTIONS, DTYPES, CorrectnessPolicy, PerfPolicy, UnseenPolicy, gates

_POLICIES = {
    gates.CORRECTNESS: CorrectnessPolicy(),
    gates.PERF: PerfPolicy(),
    gates.UNSEEN: UnseenPolicy(),
}
KEYS: Mapping[str, Mapping[str, type]] = {
    gate: {field.name: type(getattr(policy, field.name)) for field in dataclasses.fields(policy)}
    for gate, policy in _POLICIES.items()
}
"""The names and types of each gate's policy."""

_LEAST = {"processes": 3, "max_processes": 3, "samples": 2, "repeats": 2, "max_slots": 1}
_LEAST["cycles"] = 1
_WORDS = {dict: "a table", tuple: "a list of names", bool: "true or false", int: "an integer"}
_TOLERANCE_HINT = "write tolerance = { f16 = { atol = 1e-3, rtol = 1e-3 } }"


def check_policies(attrs: Mapping[str, Any]) -> None:
    """Refuse unknown names and invalid values. Raises AttributeProblem."""
    _check_tolerance(attrs["tolerance"], ("tolerance",))
    for index, name in enumerate(attrs["distributions"]):
        if name in DISTRIBUTIONS:
            raise AttributeProblem(
                f"distribution '{name}' is always tried", ("distributions", index)
            )
    for gate in KEYS:
        for name, value in attrs[gate].items():
            _check_key(gate, name, value)
        least = attrs[gate].get("processes", 0)
        if attrs[gate].get("max_processes", least) < least:
            raise AttributeProblem(
                "'max_processes' is less than 'processes'", (gate, "max_processes")
            )
    known = (*DISTRIBUTIONS, *attrs["distributions"])
    for index, name in enumerate(attrs["correctness"].get("distributions", ())):
        if name not in known:
            raise AttributeProblem(
                f"unknown distribution '{name}'",
                ("correctness", "distributions", index),
                _hint(str(name), known),
            )


def gate_policy(attrs: Mapping[str, Any], gate: str) -> dict[str, Any]:
    """The policy of one gate: its own table, completed by the task's.

    A dtype's tolerance in the gate's own table wins over the task's. The task's own
    distributions follow ours, unless the gate's table lists what to try.
    """
    policy = dict(attrs[gate])
    if attrs["tolerance"]:
        policy["tolerance"] = {**attrs["tolerance"], **policy.get("tolerance", {})}
    if gate == gates.CORRECTNESS and attrs["distributions"]:
        policy.setdefault("distributions", [*DISTRIBUTIONS, *attrs["distributions"]])
    return policy


def _check_key(gate: str, name: str, value: Any) -> None:
    path = (gate, name)
    wanted = KEYS[gate].get(name)
    if wanted is None:
        others = [other for other in KEYS if name in KEYS[other]]
        hint = f"the gate '{others[0]}' has it" if others else _hint(name, KEYS[gate])
        raise AttributeProblem(f"'{gate}' has no policy '{name}'", path, hint)
    if wanted is float:
        if type(value) not in {int, float} or not math.isfinite(value) or value < 0:
            raise AttributeProblem(f"'{name}' is {value!r}, expected a number from 0", path)
    elif type(value) is not (list if wanted is tuple else wanted):
        raise AttributeProblem(f"'{name}' is {value!r}, which is not {_WORDS[wanted]}", path)
    elif isinstance(value, int) and value < _LEAST.get(name, 0):
        raise AttributeProblem(f"'{name}' is {value}: at least {_LEAST.get(name, 0)}", path)
    elif wanted is tuple and not value:
        raise AttributeProblem(f"'{name}' is empty: list at least one", path)
    if name == "tolerance":
        _check_tolerance(value, path)


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
            if type(number) not in {int, float} or not math.isfinite(number) or number < 0:
                raise AttributeProblem(
                    f"'{name}' is {number!r}, expected a number from 0", (*path, dtype, name)
                )


def _hint(name: str, known: Iterable[str]) -> str:
    names = tuple(known)
    return suggest(name, names) or f"known: {', '.join(names)}"
