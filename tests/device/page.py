"""What a run of ``run_all.sh`` came to, as Markdown.

    python page.py FOLDER >FOLDER/README.md

FOLDER has ``notes.md`` and the stages' JSON files, of which any may be missing or there twice.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import differences
import runs
from clock_page import between_machines, clock
from copies_page import beside_copies
from model_page import modelled, models
from tables import short, spread, table

Stages = Mapping[str, Any]


def page(folder: Path) -> str:
    """The whole page."""
    stages = runs.read(folder)
    parts = [(folder / "notes.md").read_text().strip(), _machine(stages)]
    sections = {
        "suite": _suite,
        "experts": _more_experts,
        "copies": beside_copies,
        "given": _given,
        "durations": clock,
        "leases": between_machines,
        "side_by_side": _side_by_side,
        "cheats": _cheats,
        "tuner": _tuner,
        "sanitize": _sanitize,
        "counters": _counters,
        "api": _api,
        "agreement": _agreement,
        "analysis": _analysis,
        "modelled": modelled,
        "model": models,
    }
    parts += [part(stages) for name, part in sections.items() if name in stages]
    return "\n\n".join(parts) + "\n"


def _machine(stages: Stages) -> str:
    found = stages["machine"]
    device = found["devices"][0]
    packages = ", ".join(f"{name} {version}" for name, version in found["packages"].items())
    name = f"{len(found['devices'])} x {device['name']}, {device['memory.total']}"
    clocks = f"{device['clocks.max.sm']} (memory {device['clocks.max.memory']})"
    lines = [
        f"{name}, driver {device['driver_version']}",
        f"power cap {device['power.limit']}, at most {clocks}",
        f"{found['cores']} cores, Linux {found['kernel']}, Python {found['python']}",
        f"{packages}; {found['nvcc'].partition('Build')[0]}; {found['g++']}",
        f"kabuild at {found['revision'][:12]}",
    ]
    return "## Machine\n\n" + "\n".join(f"- {line}" for line in lines)


def _suite(stages: Stages) -> str:
    suite = stages["suite"]
    verdicts = [gate["verdict"] for task in suite["tasks"].values() for gate in _gates(task)]
    cold, cached = suite["cold"]["seconds"], suite["cached"]["seconds"]
    said = (
        f"`kabuild test //tasks/... --platform=cuda --agent=expert`: {cold:.1f} s with nothing "
        f"cached, {cached:.2f} s again; {verdicts.count('PASS')} of {len(verdicts)} gates passed."
    )
    legend = (
        "Times are by the judge's clock, behind its gate; *graph* is the same calls as one CUDA "
        "graph, which decides nothing. *share* is of a copy of 2 GiB by bytes a second, **bold** "
        "for the largest "
        "config of a task that memory bounds, with its share of a copy of as many bytes behind "
        "it; of matrix products, of the speed of the vendor's library. *spread* is how far the "
        f"processes of the expert are apart, of which there are three to {_processes(suite)}."
    )
    figures = _figures(suite, stages.get("roofline", {}))
    return "\n\n".join(["## Suite", said, legend, figures, _compiling(stages), _compiled(suite)])


def _more_experts(stages: Stages) -> str:
    tasks = stages["experts"]
    said = (
        f"Experts of {len(tasks['tasks'])} further tasks, judged on two machines where no other "
        "number is said; the figures are those of one of them, which the first table names. "
        "Columns as above."
    )
    return f"## More experts\n\n{said}\n\n{_figures(tasks, stages.get('roofline', {}))}"


def _given(stages: Stages) -> str:
    first = stages["given"]["tasks"]
    runs = [first, stages["given"].get("again", first)]
    said = (
        "By a clock that serves for nothing else, on the config that takes longest at the roof; "
        "most of these tasks have no expert here. `tasks/README.md` has the shares of the roof."
    )
    rows = [
        [short(label), row["config"], *(f"{run[label]['given_ns'] / 1e3:.1f}" for run in runs)]
        for label, row in first.items()
        if "given_ns" in row and not row["host"]
    ]
    head = ("task", "config", "given µs", "on another machine" if runs[1] is not first else "again")
    return f"## Given kernels\n\n{said}\n\n{table(head, rows)}"


def _processes(suite: Any) -> str:
    """In words, how many processes any config of a suite had at most."""
    counts = [
        len(times)
        for task in suite["tasks"].values()
        for sides in task["processes_ns"].values()
        for times in sides.values()
    ]
    words = ["three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    return words[max(counts) - 3]


def _figures(suite: Any, shares: Any) -> str:
    rows = [
        _row(label, case, task, shares.get(label, {}).get(case["config"], {}))
        for label, task in suite["tasks"].items()
        for case in task["configs"]
    ]
    columns = ("expert µs", "graph", "baseline µs", "speedup (95 %)", "share", "spread")
    return table(("task", "config", *columns), rows)


def _row(label: str, case: Any, task: Any, share: Mapping[str, Any]) -> list[str]:
    of = share.get("share_of_copy", share.get("share_of_vendor"))
    percent = "" if of is None else f"{100 * of:.0f} %"
    equal = f", {100 * share['of_equal_copy']:.0f} %" if "of_equal_copy" in share else ""
    processes = task["processes_ns"].get(case["config"], {}).get("candidate", [])
    graph = task["as_one_graph_ns"].get(case["config"], {}).get("candidate")
    return [
        short(label),
        case["config"],
        f"{case['candidate_ns'] / 1e3:.1f}",
        f"{graph / 1e3:.1f}" if graph else "",
        f"{case['baseline_ns'] / 1e3:.1f}",
        f"{case['speedup']:.2f} ({case['low']:.2f} to {case['high']:.2f})",
        f"**{percent}**{equal}" if share.get("largest") else percent,
        f"{spread(processes):.1f} %" if processes else "",
    ]


def _compiling(stages: Stages) -> str:
    build, extension = stages["build"], stages.get("extension", {})
    times = {name.partition(":")[0]: gate["seconds"] for name, gate in build["gates"].items()}
    hip = sorted(seconds for label, seconds in times.items() if "triton" not in label)
    return (
        f"Compiling: {build['seconds']} s for all {len(times)} experts together; one HIP kernel "
        f"{hip[0]:.1f} to {hip[-1]:.1f} s, in the middle {statistics.median(hip):.1f} s, with all "
        f"its instantiations; one trivial kernel as an extension of PyTorch "
        f"(`load_inline`) {extension.get('seconds', '?')} s."
    )


def _compiled(suite: Any) -> str:
    rows = []
    for label, task in suite["tasks"].items():
        for config, modes in task["baselines"].items():
            shown = [modes.get(mode) for mode in _MODES]
            cells = [f"{ns / 1e3:.1f}" if isinstance(ns, float) else ns or "" for ns in shown]
            rows.append([short(label), config, *(c[:40] for c in cells), modes["counted"]])
    head = ("task", "config", *_MODES, "counted")
    return "PyTorch itself, in µs, and which of its modes is the baseline:\n\n" + table(head, rows)


_MODES = ("eager", "max-autotune-no-cudagraphs", "max-autotune")


def _side_by_side(stages: Stages) -> str:
    found = stages["side_by_side"]
    names = [name for name in found if "x" in name and isinstance(found[name], dict)]
    rows = []
    for name in sorted(names):
        ours = found[name]["expert"]["median_us"]
        for variant, time in found[name].items():
            if "median_us" in time:
                us = time["median_us"]
                rows.append([name, variant, f"{us:.1f}", f"{us / ours:.2f}"])
        kernel = found[name]["measured earlier"]["AutoKernel"]
        rows.append([name, "AutoKernel's, measured earlier", f"{kernel}", f"{kernel / ours:.2f}"])
    head = ("float16", "what", "µs", "over the expert's")
    speed = found["device"]["copy"]["bytes_per_second"] / 1e12
    return (
        f"## Side by side\n\nCold cache, median of 140 calls in turns; *compiled* is "
        f"`torch.compile(mode='{found['mode of compiled']}')`. A copy of 2 GiB: {speed:.2f} TB/s."
        "\n\n" + table(head, rows)
    )


def _cheats(stages: Stages) -> str:
    rows = [
        [name, found.get("expected", ""), found["got"], "yes" if found["as_expected"] else "no"]
        for name, found in stages["cheats"].items()
    ]
    return "## Cheats\n\n" + table(("candidate", "expected", "got", "as expected"), rows)


def _tuner(stages: Stages) -> str:
    found = stages["tuner"]
    rows = [
        [
            short(label),
            _handed_in(row),
            _interval(row["speedup"], row["configs"]) if row["configs"] else "not judged",
            ", ".join(_interval(case["speedup"], [case]) for case in row["configs"]),
            str(row.get("tried", "")),
            f"{row['agent_seconds']:.0f}" if "agent_seconds" in row else "",
        ]
        for label, row in found["tasks"].items()
    ]
    said = (
        f"`--agent=tuner` with {found['seconds_each']} s for each task: {found['beaten']} of "
        f"{found['of']} given kernels beaten, {found['seconds']:.0f} s in all."
    )
    if found.get("not_begun"):
        said += f" No time was left for {', '.join(map(short, found['not_begun']))}."
    if found["bundles"]:
        said += f" For others to check and rerun: {_bundles(found['bundles'])}."
    legend = (
        "*Speedup* is the mean over the configs, its interval that of the ends of theirs; a kernel "
        "is beaten where that lies above 1. *Tried* are the kernels that it timed."
    )
    head = ("task", "handed in", "speedup (95 %)", "by config", "tried", "seconds")
    return f"## Tuner\n\n{said}\n\n{legend}\n\n" + table(head, rows)


def _bundles(tasks: Mapping[str, Sequence[str]]) -> str:
    return ", ".join(f"[{file}]({file}) with {len(of)} of them" for file, of in tasks.items())


def _handed_in(row: Any) -> str:
    values: str = row.get("values", "")
    return values or ("the kernel as it is" if "values" in row else "")


def _interval(speedup: float, cases: Sequence[Any]) -> str:
    low, high = (statistics.fmean(case[end] for case in cases) for end in ("low", "high"))
    return f"{speedup:.2f} ({low:.2f} to {high:.2f})"


def _expected(cases: Mapping[str, Any]) -> str:
    """What each case was to give, beside what it gave."""
    rows = [
        [name, case["expected"], case["got"], "yes" if case["as_expected"] else "no"]
        for name, case in cases.items()
    ]
    return table(("kernel", "expected", "got", "as expected"), rows)


def _sanitize(stages: Stages) -> str:
    found = stages["sanitize"]
    own = [
        _kernels(kind, found[kind], found["seconds"][kind]) for kind in ("experts", "given kernels")
    ]
    said = (
        "`kabuild test --gates=sanitize --platform=cuda` on kernels with one mistake each, and on "
        f"kernels that are right ({found['seconds']['cases']:.0f} s together):"
    )
    verdicts = _expected(found["cases"])
    ours = f"The HIP tasks' own: {'; '.join(own)}."
    return f"## compute-sanitizer\n\n{said}\n\n{verdicts}\n\n{ours}"


def _counters(stages: Stages) -> str:
    found = stages["counters"]
    own = [
        f"`{label}` (kernels: {len(one['kernels'])}; configs: {one['configs']}): "
        f"{', '.join(one['kinds'])}"
        for label, one in found["own"].items()
    ]
    said = (
        "`kabuild analyze --platform=cuda` on kernels whose bound is known "
        f"({found['seconds']['cases']:.0f} s together), with Nsight "
        "Compute in the candidate's sandbox:"
    )
    verdicts = _expected(found["cases"])
    ours = f"Experts, in {found['seconds']['own']:.0f} s: {'; '.join(own)}."
    return f"## A GPU's counters\n\n{said}\n\n{verdicts}\n\n{ours}"


def _kernels(kind: str, found: Mapping[str, Any], seconds: float) -> str:
    verdicts = [entry["verdict"] for entry in found.values()]
    counted = ", ".join(f"{verdicts.count(name)} {name}" for name in sorted(set(verdicts)))
    return f"{kind}: {counted}, {seconds:.0f} s"


def _api(stages: Stages) -> str:
    rows = [
        [short(label), ", ".join(row["gates"])]
        + [str(row[column]) for column in ("jobs", "evaluations", "a_minute")]
        for label, row in stages["api"].items()
        if "a_minute" in row
    ]
    head = ("task", "gates", "devices", "evaluations", "a minute")
    return "## Evaluations through the interface for Python\n\n" + table(head, rows)


def _agreement(stages: Stages) -> str:
    """How far repeated runs are apart, where there were any, and who waited for whom."""
    found = stages["agreement"]
    rows = []
    for name, read in found["agreement"].items():
        if len(read.get("speedup", {}).get("readings", ())) < _SEVERAL:
            continue
        apart = [f"{read[value]['spread_percent']:.1f} %" for value in _COMPARED]
        times = ", ".join(f"{ns / 1e3:.1f}" for ns in read["candidate_ns"]["readings"])
        label, _, config = name.partition(" ")
        overlap = "yes" if read["intervals_overlap"] else "no"
        rows.append([short(label), config, times, *apart, overlap])
    head = ("task", "config", "µs of the expert", "apart", "given", "speedup", "intervals overlap")
    again = ["Experts timed anew, run by run:", table(head, rows)] if rows else []
    told = [
        f"- exit code {one['exit_code']}, {one['verdicts']}, {one['seconds']:.1f} s, of which "
        f"{one['perf_seconds']} measuring; {one['said'] or 'nothing to wait for'}"
        for one in found["two_processes_on_one_device"]
    ]
    waiting = ["Two processes that want one device:", "\n".join(told)]
    return "\n\n".join(["## Agreement", *again, *waiting])


_COMPARED = ("candidate_ns", "baseline_ns", "speedup")
_SEVERAL = 2


def _analysis(stages: Stages) -> str:
    """How the counts of ``kabuild analyze`` agree with a profiler's, and why they do not."""
    rows = stages["analysis"]["rows"]
    told = differences.summary(rows)
    calls = {(row["kernel"], row["config"]) for row in rows}
    kernels = {name for name, _ in calls}
    said = (
        "What `kabuild analyze` counts on a CPU, for warps of 32 lanes, beside what Nsight Compute "
        f"counts of the same calls: {len(calls)} calls of {len(kernels)} kernels, small configs. "
        "Each launch is compared by itself. Where the two differ, the cause is inferred from which "
        "count is larger, and by how much; it was not looked up in the GPU's code."
    )
    causes = "\n".join(f"- *{cause}*: {what}" for cause, what in differences.CAUSES.items())
    table_rows = [
        [name, str(one["rows"]), *(str(one["causes"].get(c, "-")) for c in differences.CAUSES)]
        for name, one in sorted(told.items())
    ]
    left = sorted(
        {(name, kernel) for name, one in told.items() for kernel, *_ in one["unexplained"]}
    )
    listed = "; ".join(f"{name} of `{kernel}`" for name, kernel in left)
    parts = ["## Counts without a GPU", said, causes]
    parts += [table(("figure", "launches", *differences.CAUSES), table_rows)]
    return "\n\n".join([*parts, *([f"Unexplained: {listed}."] if left else [])])


def _gates(task: Any) -> Iterable[Any]:
    found: Mapping[str, Any] = task["gates"]
    return found.values()


if __name__ == "__main__":
    print(page(Path(sys.argv[1])), end="")
