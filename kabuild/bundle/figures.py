"""Whether the figures of a published measurement agree with themselves, and with a rerun's.

Times differ from run to run, so a rerun cannot repeat them. It shows that each config's speedup is
within both intervals' reach, that no config was left out, and that times are of the same order.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from kabuild.model.figure import positive
from kabuild.model.speedup import Speedup

TIMES = 10.0
"""How much longer or shorter a call may take in a rerun. Machines are loaded, or throttle."""

_SLACK = 2.0
"""How far the ratio of two typical times may be from the interval of their ratio."""
_LAST_DIGITS = 1e-9
_COUNTED = (int, float, list, Mapping)
_ROUNDED = 1e-3
"""Relative: verdicts have six digits, and means are made of them."""

_KEPT = ("speedup", "low", "high", "candidate_ns", "baseline_ns")

Case = Mapping[str, Any]


@dataclass(frozen=True)
class Remeasured:
    """The figures of one config, then and now.

    Attributes:
        then, now: ``speedup``, the ends ``low`` and ``high`` of its interval, ``candidate_ns`` and
            ``baseline_ns``, as far as a verdict has them.
    """

    config: str
    then: Mapping[str, float]
    now: Mapping[str, float]


def is_measured(verdict: Mapping[str, Any]) -> bool:
    """Whether a verdict has the speedup of some config."""
    return any(positive(case, "speedup") for case in _list(verdict))


def disagreement(then: Mapping[str, Any], now: Mapping[str, Any], *, whole: bool) -> str:
    """How the published verdict ``then`` contradicts itself or its rerun; empty if it does not.

    With ``whole``, what was measured now has to have been measured then.
    """
    again = {str(case["config"]): case for case in _list(now)}
    told: dict[str, Case] = {}
    for case in _list(then):
        config = str(case["config"])
        if config in told:
            return f"{config} is listed twice"
        told[config] = case
        if config not in again:
            return f"{config} was measured then, but not now"
        if found := _of_itself(case) or _of_both(case, again[config]):
            return f"{config}: {found}"
    left_out = (name for name, case in again.items() if positive(case, "speedup"))
    if whole and (missing := next((name for name in left_out if name not in told), "")):
        return f"{missing} was measured now, but not then"
    return _of_mean(then, [*told.values()])


def remeasured(then: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[Remeasured, ...]:
    """The figures of each config that has a speedup in both verdicts."""
    again = {str(case["config"]): _kept(case) for case in _list(now)}
    pairs = ((str(case["config"]), _kept(case)) for case in _list(then))
    return tuple(
        Remeasured(config, figures, again[config])
        for config, figures in pairs
        if "speedup" in figures and "speedup" in again.get(config, {})
    )


def mean_speedups(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """``1.53x then, ~1.52x now``; empty if a verdict has no mean. See ``Speedup`` for the ``~``."""
    before, after = _mean(then), _mean(now)
    return f"{_shown(before)} then, {_shown(after)} now" if before and after else ""


def _mean(verdict: Mapping[str, Any]) -> Speedup | None:
    """The mean over all configs, with its interval, or else with the mean ends of theirs."""
    found = Speedup.read(verdict, "mean_speedup")
    if found is None or found.ends:
        return found
    figures = [_figures(case) for case in _list(verdict)]
    lows = [low for _, low, _ in figures if low]
    highs = [high for _, _, high in figures if high]
    if not figures or not len(lows) == len(highs) == len(figures):
        return found
    return Speedup(found.value, statistics.fmean(lows), statistics.fmean(highs))


def _shown(speedup: Speedup) -> str:
    """Three digits; with ``~`` where the interval is too wide, so that it is the lower end."""
    return f"{'~' if speedup.wide else ''}{speedup.value:.3g}x"


def other_number(then: Any, now: Any, where: str = "") -> str:
    """The first number in a JSON value that is another one in its rerun; empty if none is.

    Other libraries may round the last digits differently.
    """
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        found = (
            other_number(then.get(key), now.get(key), f"{where}.{key}" if where else key)
            for key in sorted(then.keys() | now.keys())
        )
    elif isinstance(then, list) and isinstance(now, list):
        pairs = enumerate(zip_longest(then, now))
        found = (other_number(*pair, f"{where}[{index}]") for index, pair in pairs)
    elif then == now or _is_close(then, now):
        return ""
    elif not any(isinstance(value, _COUNTED) for value in (then, now)):
        return ""  # a text, with a rounded number perhaps
    else:
        return f"{where} was {then!r:.60}, is {now!r:.60}"
    return next(filter(None, found), "")


def _is_close(then: Any, now: Any) -> bool:
    return all(type(value) in {int, float} for value in (then, now)) and math.isclose(
        then, now, rel_tol=_LAST_DIGITS
    )


def _of_itself(case: Case) -> str:
    value, low, high = _figures(case)
    if not (value and low and high):
        return ""
    if not low * (1 - _ROUNDED) <= value <= high * (1 + _ROUNDED):
        return f"a speedup of {value:.3g} is not between {low:.3g} and {high:.3g}"
    slow, fast = positive(case, "baseline_ns"), positive(case, "candidate_ns")
    if slow and fast and not low / _SLACK <= slow / fast <= high * _SLACK:
        return f"its times are {slow:.4g} and {fast:.4g} ns, not a speedup of {value:.3g}"
    return ""


def _of_both(case: Case, again: Case) -> str:
    if not _overlap(case, again):
        return f"{_interval(case)} then, {_interval(again)} now"
    for name in ("candidate_ns", "baseline_ns"):
        then, now = positive(case, name), positive(again, name)
        if then and now and not 1 / TIMES <= then / now <= TIMES:
            return f"{name} was {then:.4g}, is {now:.4g}"
    return ""


def _of_mean(verdict: Mapping[str, Any], cases: Sequence[Case]) -> str:
    """How the figure of all configs contradicts theirs."""
    mean = positive(verdict, "mean_speedup")
    figures = [_figures(case) for case in cases]
    lows = [low for _, low, _ in figures if low]
    highs = [high for _, _, high in figures if high]
    if not mean or not cases or not len(lows) == len(highs) == len(cases):
        return ""
    low, high = statistics.fmean(lows), statistics.fmean(highs)
    ends = positive(verdict, "speedup_low") or low, positive(verdict, "speedup_high") or high
    told = (("mean_speedup", mean), ("speedup_low", ends[0]), ("speedup_high", ends[1]))
    for name, value in told:
        if not low * (1 - _ROUNDED) <= value <= high * (1 + _ROUNDED):
            return f"{name} is {value:.3g}, which is not between {low:.3g} and {high:.3g}"
    return ""


def _list(verdict: Mapping[str, Any]) -> list[Case]:
    """The cases of a verdict that are of configs."""
    cases = verdict.get("cases")
    known = cases if isinstance(cases, list) else []
    return [
        {"config": "", **case}
        for case in known
        if isinstance(case, dict) and ("config" in case or positive(case, "speedup"))
    ]


def _kept(case: Case) -> dict[str, float]:
    return {name: value for name in _KEPT if (value := positive(case, name)) is not None}


def _figures(case: Case) -> tuple[float | None, float | None, float | None]:
    return positive(case, "speedup"), positive(case, "low"), positive(case, "high")


def _overlap(one: Case, other: Case) -> bool:
    (_, low, high), (_, other_low, other_high) = _figures(one), _figures(other)
    if low and high and other_low and other_high:
        return low <= other_high and other_low <= high
    return bool(one.get("speedup") == other.get("speedup"))


def _interval(case: Case) -> str:
    value, low, high = _figures(case)
    if value and low and high:
        return f"{_shown(Speedup(value, low, high))} ({low:.3g} to {high:.3g})"
    return f"{case.get('speedup')}"
