"""The output of ``bench``: the times of one task, for people."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from kabuild.model.speedup import Speedup

BLOCKS = " ▁▂▃▄▅▆▇█"
ASCII = " .:-=+*#@"
BINS = 48
_SIDES = ("baseline", "candidate")
_KEPT = ("speedup", "low", "high", "faster", "cold", "slots", "baseline_slots", "warm")
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))


def read_bench(verdict: Mapping[str, Any], samples: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of one perf gate for ``--json``: per config both sides and the speedup.

    Times are ns of one call, as the runner reported them. ``low`` and ``high`` of a side are its
    fastest and slowest process by their medians; those of the speedup its 95 % interval. ``warm``
    has the figures of repeated calls, or is None.
    """
    cases = {case["config"]: case for case in verdict["cases"]}
    configs = []
    for name, case in cases.items():
        sides = {side: _side(samples["configs"][name][side]) for side in _SIDES}
        configs.append({"config": name, **{key: case[key] for key in _KEPT}, **sides})
    return {
        "verdict": verdict["verdict"],
        "summary": verdict["summary"],
        "stop": verdict["stop"],
        "configs": configs,
        "machine": samples["machine"],
    }


def render_bench(label: str, bench: Mapping[str, Any], ramp: str = BLOCKS) -> str:
    """One task for people; ``ramp`` has the plot's characters from none to most.

    With ``ASCII``, all that is printed is ASCII where labels and the gate's summary are.
    """
    lines = [f"{label}  {bench['verdict']}: {bench['summary']}"]
    for config in bench["configs"]:
        lines += ["", *_config(config, ramp)]
    text = "\n".join([*lines, "", f"  {_stop(bench['stop'])}", f"  {_state(bench['machine'])}"])
    return text.replace("±", "+-") if ramp == ASCII else text


def _stop(stop: Mapping[str, Any]) -> str:
    """Why sampling stopped."""
    reached = f"half-width {stop['half_width']:.3f}, wanted {stop['wanted']:g}"
    return f"{stop['processes']} processes a side, ended by {stop['reason']}: {reached}"


def _state(machine: Mapping[str, Any]) -> str:
    """The state of the machine during the measurement."""
    first, last = machine["readings"][0], machine["readings"][-1]
    load = " ".join(f"{value:.2f}" for value in machine["load"])
    clocks = [mhz for reading in machine["readings"] if reading["mhz"] for mhz in reading["mhz"]]
    parts = [
        f"{machine['cores']} cores, load {load} when measured",
        f"{min(clocks):.0f} to {max(clocks):.0f} MHz" if clocks else "frequency not readable",
        _grown("throttle events: {:.0f}", first["throttled"], last["throttled"])
        or "throttling not readable",
        _grown("{:.0f} ms stolen", first["stolen_ms"], last["stolen_ms"]),
    ]
    return ", ".join(filter(None, parts))


def _grown(text: str, before: float | None, after: float | None) -> str:
    return "" if before is None or after is None else text.format(after - before)


def histogram(times: Sequence[float], low: float, high: float, ramp: str) -> str:
    """``times`` between ``low`` and ``high`` on a logarithmic axis; non-empty bins are visible."""
    counts = [0] * BINS
    width = math.log(high / low) or 1.0
    for time in times:
        place = int(BINS * math.log(time / low) / width)
        counts[min(max(place, 0), BINS - 1)] += 1
    top = len(ramp) - 1
    return "".join(ramp[math.ceil(top * count / max(counts))] for count in counts)


def duration(nanoseconds: float) -> str:
    """Three digits and a unit: ``1.58 ms``."""
    scale, unit = next((u for u in _UNITS if nanoseconds >= u[0]), _UNITS[-1])
    return f"{nanoseconds / scale:.3g} {unit}"


def _side(processes: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    times = [[sample["reported_ns"] / sample["slots"] for sample in p] for p in processes]
    medians = [statistics.median(process) for process in times]
    return {
        "median_ns": statistics.median(medians),
        "low_ns": min(medians),
        "high_ns": max(medians),
        "processes": len(times),
        "samples": sum(map(len, times)),
        "times_ns": times,
    }


def _config(config: Mapping[str, Any], ramp: str) -> list[str]:
    caches = "cold caches" if config["cold"] else "too few calls for cold caches"
    calls = f"{config['slots']} calls a batch"
    if config["baseline_slots"] != config["slots"]:
        calls += f", {config['baseline_slots']} of the baseline"
    lines = [f"  {config['config']}  ({caches}, {calls})"]
    flat = {side: [t for p in config[side]["times_ns"] for t in p] for side in _SIDES}
    low, high = min(map(min, flat.values())), max(map(max, flat.values()))
    for side in _SIDES:
        found = config[side]
        span = f"[{duration(found['low_ns'])}, {duration(found['high_ns'])}]"
        lines.append(
            f"    {side:<9}  {duration(found['median_ns']):>8} {span:<20}"
            f"  {found['processes']} processes, {found['samples']} samples"
        )
        lines.append(f"               |{histogram(flat[side], low, high, ramp)}|")
    lines.append(f"                {duration(low):<{BINS // 2}}{duration(high):>{BINS // 2}}")
    sure = "" if config["faster"] else ", not significantly faster"
    lines.append(f"    speedup    {_interval(config)} at 95 %{sure}")
    if warm := config["warm"]:
        times = (warm["baseline_ns"], warm["candidate_ns"])
        both = " to ".join(duration(time) for time in times)
        lines.append(f"    warm       {_interval(warm)}, {both}: repeated calls, not scored")
    return lines


def _interval(figures: Mapping[str, Any]) -> str:
    speedup = Speedup(figures["speedup"], figures["low"], figures["high"])
    return f"{speedup} [{figures['low']:.3g}, {figures['high']:.3g}]"
