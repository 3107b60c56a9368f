"""What the keys of real tasks' gates are made of, and which ones an edit of the judge changes."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from kabuild.model.action import Action, Literal, Source
from tests.testkit import golden
from tests.testkit.own_tasks import ROOT, TASKS, analysed, analysis_of, keys, scaffolded

TOOLS = "rules/harness/tools"
GATES = ("compile", "correctness", "perf", "unseen", "retention", "sanitize", "analyze", "score")


WATCHED = ("sanitize", "analyze")
INSTRUMENTED = tuple(f"{gate}.compile" for gate in WATCHED)


def composition(action: Action) -> dict[str, Any]:
    """Everything that the key of an action is made of; of files only where they come from.

    With their contents, every edit of the judge would be a change to accept.
    """
    return {
        "argv": list(action.argv),
        "env": dict(action.env),
        "inputs": {path: origin(item) for path, item in action.inputs},
        "outputs": list(action.outputs),
        "platform": [action.platform.name, *map(list, action.platform.properties)],
        "limits": asdict(action.limits),
        "toolchains": [toolchain.name for toolchain in action.toolchains],
    }


def origin(item: object) -> str:
    if isinstance(item, Source):
        return f"{item.root} {item.path}"
    return f"literal {item.data.decode()}" if isinstance(item, Literal) else str(item)


@pytest.mark.parametrize("family", [*TASKS, "call"])
def test_what_a_gate_is_made_of_changes_only_by_decision(family: str) -> None:
    """Accept it with KABUILD_TEST_ACCEPT=1, and say it in the changelog: everybody judges again."""
    task = analysed(family, "cpu")
    gates = {action.gate: action for action in task.graph if action.gate}
    golden.check(f"keys/{family}", {gate: composition(gates[gate]) for gate in sorted(gates)})


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree whose files may be edited."""
    root = tmp_path_factory.mktemp("edited")
    for part in ("rules", "toolchains", "kabuild/sandbox", "tasks"):
        shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
    return root


def changed(family: str, copied: Path, path: str, platform: str = "cpu") -> set[str]:
    """The sub-targets of a task and of its tools whose keys an edit of ``path`` changes."""
    task = analysed(family, platform)
    before = keys(task, copied)
    file = copied / path
    text = file.read_bytes()
    file.write_bytes(text + b"\n")
    try:
        after = keys(task, copied)
    finally:
        file.write_bytes(text)
    return {label.partition(".")[2] for label in before if before[label] != after[label]}


@pytest.mark.parametrize(
    ("family", "path", "gates"),
    [
        ("hip2hip", f"{TOOLS}/perf/audit.py", {"perf", "retention"}),
        ("hip2hip", f"{TOOLS}/score.py", {"score"}),
        ("hip2hip", f"{TOOLS}/terms/scoring.py", {"score"}),
        ("hip2hip", f"{TOOLS}/correctness/extents.py", {"correctness"}),
        ("hip2hip", f"{TOOLS}/unseen/gate.py", {"unseen"}),
        ("hip2hip", f"{TOOLS}/retention/gate.py", {"retention"}),
        ("hip2hip", f"{TOOLS}/sanitize/reports.py", {"sanitize"}),
        ("hip2hip", f"{TOOLS}/analyze/findings.py", {"analyze"}),
        ("hip2hip", f"{TOOLS}/admission/filters.py", {"admission"}),
        ("hip2hip", f"{TOOLS}/pyrunner/calls.py", set()),
        ("torch2hip", f"{TOOLS}/triton_cpu/reduce.py", set()),
        (
            "triton2triton",
            f"{TOOLS}/triton_cpu/reduce.py",
            {"correctness", "perf", "unseen", "retention", "admission", "analyze"},
        ),
        ("triton2triton", f"{TOOLS}/triton_counted/counter.py", {"analyze"}),
        ("triton2triton", f"{TOOLS}/pyrunner_device/device.py", set()),
        (
            "torch2hip",
            "kabuild/sandbox/seccomp.py",
            {
                *("baseline", "correctness", "perf", "unseen", "retention", "admission"),
                *("sanitize", "analyze"),
            },
        ),
        ("torch2hip", f"{TOOLS}/baseline/gate.py", {"baseline"}),
        ("torch2hip", f"{TOOLS}/perf/chooser.py", {"baseline", "perf", "retention"}),
        ("torch2hip", "tasks/torch2hip/gelu/gelu.hip", {"compile", *INSTRUMENTED}),
        (
            "torch2hip",
            "tasks/torch2hip/gelu/reference.py",
            {"baseline", "correctness", "perf", "unseen", "retention", *WATCHED, "admission"},
        ),
    ],
)
def test_an_edit_judges_again_what_it_can_change(
    copied: Path, family: str, path: str, gates: set[str]
) -> None:
    assert changed(family, copied, path) == gates


@pytest.mark.parametrize(
    ("family", "path"),
    [
        ("hip2hip", f"{TOOLS}/counters/findings.py"),
        ("torch2hip", f"{TOOLS}/counters/nsight.py"),
        ("triton2triton", f"{TOOLS}/pyrunner_alone/process.py"),
    ],
)
def test_an_edit_of_what_a_device_counts_judges_nothing_again(
    copied: Path, family: str, path: str
) -> None:
    assert changed(family, copied, path, "cuda") == {"counters"}


def test_a_kernel_is_in_the_keys_of_its_compilations_alone(copied: Path) -> None:
    """What comes after has the compiled kernel."""
    task = "tasks/hip2hip/softmax"
    judging = {"correctness", "perf", "unseen", "retention", "sanitize", "analyze", "admission"}
    compiling = {"compile", "baseline.compile", "sanitize.compile", "analyze.compile"}
    assert changed("hip2hip", copied, f"{task}/softmax.hip") == compiling
    assert changed("hip2hip", copied, f"{task}/reference.py") == judging


HIP = "toolchains/hip"
SANITIZER = (
    f"{HIP}/cpu/sanitizer/clocks.cpp",
    f"{HIP}/cpu/driver/instrumentation.py",
    f"{HIP}/cpu/driver/sanitized.py",
)


@pytest.mark.parametrize("path", SANITIZER)
def test_an_edit_of_the_cpu_s_sanitizer_compiles_nothing_again_for_gpus(
    copied: Path, path: str
) -> None:
    assert "sanitize.runtime" in changed("hip2hip", copied, path)
    for platform in ("cuda", "rocm"):
        assert changed("hip2hip", copied, path, platform) == set()


@pytest.mark.parametrize(
    ("file", "parts"),
    [
        ("requests.cpp", {"analyze.runtime"}),
        ("whole_copies.py", {"analyze.runtime", "analyze.compile"}),
        ("arithmetic.py", {"analyze.runtime", "analyze.compile"}),
    ],
)
def test_the_counters_are_in_no_key_but_those_of_the_analysis(
    copied: Path, file: str, parts: set[str]
) -> None:
    assert changed("hip2hip", copied, f"{HIP}/cpu/counting/{file}") == parts


@pytest.mark.parametrize("platform", ["cuda", "rocm"])
def test_no_platform_compiles_with_what_is_another_s(copied: Path, platform: str) -> None:
    """Editing one platform's driver changes no key of the other two."""
    path = f"{HIP}/{platform}/driver/{platform}_platform.py"
    for other in {"cpu", "cuda", "rocm"} - {platform}:
        assert changed("hip2hip", copied, path, other) == set()
    assert "compile" in changed("hip2hip", copied, path, platform)


def test_an_edit_of_a_kernel_s_driver_keeps_the_native_runners(copied: Path) -> None:
    """They are built by the host's compilers alone."""
    again = changed("hip2hip", copied, f"{HIP}/driver/compile_hip.py", "cuda")
    assert "compile" in again
    assert again.isdisjoint({"runner", "launch_filter"})


@pytest.mark.parametrize(("platform", "coarse"), [("cuda", True), ("cpu", False)])
def test_judges_learn_where_a_task_may_round_to_tf32(
    tmp_path: Path, platform: str, coarse: bool
) -> None:
    shutil.copytree(scaffolded("call"), tmp_path, dirs_exist_ok=True)
    declared = tmp_path / "tasks/call/mine/BUILD.toml"
    lines = declared.read_text().splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("name"))
    declared.write_text("\n".join([*lines[: place + 1], "tf32 = true", *lines[place + 1 :]]))

    for text, expected in ((declared.read_text(), coarse), ("\n".join(lines), False)):
        declared.write_text(text)
        task = analysis_of(tmp_path, "//tasks/call/mine", platform)
        specs = {
            action.gate: json.loads(item.data)
            for action in task.graph
            for path, item in action.inputs
            if action.gate and path == "spec.json" and isinstance(item, Literal)
        }
        found = {gate: specs[gate].get("tf32", False) for gate in ("correctness", "perf", "unseen")}
        assert found == dict.fromkeys(found, expected)
