"""Each gate's action has those files of the judge that it imports, and no others."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from kabuild.model.action import Action, Source
from rules.harness.judge_files import COMPILE_FILES, GATE_FILES
from tests.testkit.own_tasks import ROOT, action_of

TOOLS = ROOT / "rules/harness/tools"
SANDBOX = ROOT / "kabuild/sandbox"
PLATFORMS = ROOT / "toolchains/platforms"
JUDGING = ("correctness", "perf", "unseen", "retention", "admission")
WATCHED = {
    ("sanitize", "cpu"): {"hip2hip", "torch2hip"},
    ("analyze", "cpu"): {"hip2hip", "torch2hip", "triton2triton"},
    ("counters", "cuda"): {"hip2hip", "torch2hip", "triton2triton"},
}
"""The gates on request that are looked at here, each by the families that have it there."""

COUNTING = {
    ("analyze", "triton2triton"): (
        "pyrunner/process.py",
        "triton_apart/apart.py",
        "triton_counted/counter.py",
    ),
    ("counters", "triton2triton"): (
        "pyrunner/process.py",
        "pyrunner_device/device.py",
        "pyrunner_alone/process.py",
    ),
}
"""What the processes of these gates import that call a kernel written in Python."""

_INTERPRETER = "triton_cpu/interpreter.py"
_DEVICE = "pyrunner_device/device.py"
RUNNERS = {
    ("hip2hip", "cpu"): (),
    ("hip2hip", "cuda"): (),
    ("torch2hip", "cpu"): ("pyrunner/process.py",),
    ("torch2hip", "cuda"): ("pyrunner/process.py", "pyrunner_device/device.py"),
    ("call", "cpu"): ("pyrunner/process.py", "pyrunner_call/called.py", _INTERPRETER),
    ("call", "cuda"): ("pyrunner/process.py", "pyrunner_call/called.py", _DEVICE),
    ("triton2triton", "cpu"): ("pyrunner/process.py", "triton_apart/apart.py"),
    ("triton2triton", "cuda"): ("pyrunner/process.py", "pyrunner_device/device.py"),
}
"""What launchers import by name, because not every judge has it."""

WHOLE = {TOOLS / "base/sampler.py"}
"""Of a package that gates take whole, what those do not need that draw no configs."""

BY_NAME = {
    "pyrunner_device/device.py": tuple(
        f"pyrunner_device/{name}.py" for name in ("binaries", "gate", "triton_driver")
    ),
}


@cache
def imported(path: Path) -> frozenset[Path]:
    """The files of ours that a module's ``import`` statements name, at whatever level."""
    tree = ast.parse(path.read_text())
    typing = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    names: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in typing:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level and path.parent != SANDBOX:  # whose modules lie beside the judge's
                base = f"{path.parent.name}.{base}".rstrip(".")
            names |= {base, *(f"{base}.{alias.name}".lstrip(".") for alias in node.names)}
    return frozenset(file for name in names if name for file in files_of(name))


def files_of(name: str) -> Iterator[Path]:
    """The module's file and those of its packages, as far as they are ours."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        for root in (TOOLS, SANDBOX):
            path = root.joinpath(*parts[:count])
            candidates = (path / "__init__.py", path.with_suffix(".py"))
            yield from (file for file in candidates if file.is_file())


def closure(*starts: str) -> set[Path]:
    """Every file that is imported, beginning with ``starts``."""
    seen: set[Path] = set()
    waiting = [TOOLS / start for start in starts]
    waiting += [TOOLS / name for start in starts for name in BY_NAME.get(start, ())]
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen |= {path}
            waiting += imported(path)
            if path.parent not in {TOOLS, SANDBOX} and not path.is_relative_to(PLATFORMS):
                waiting.append(path.with_name("__init__.py"))
    return seen


def told(platform: str) -> tuple[str, ...]:
    """The file in which a platform says what judges have to know; ``cpu`` has none."""
    file = PLATFORMS / platform / "tools" / f"{platform}_device.py"
    return () if platform == "cpu" else (str(file),)


def given(action: Action, below: str = "tools/") -> set[Path]:
    """The Python files that an action has below a directory, and what is no such file."""
    roots = {"builtin": ROOT, "kabuild": ROOT / "kabuild"}
    found = set()
    for path, item in action.inputs:
        if path.startswith(below) and isinstance(item, Source):
            host = roots[item.root] / item.path
            own = host.parent.parent.parent == PLATFORMS and host.name == path.removeprefix(below)
            assert item.root != "builtin" or own or host == TOOLS / path.removeprefix(below)
            found |= set(host.rglob("*.py")) if host.is_dir() else {host}
    return found


def names(paths: set[Path]) -> list[str]:
    return sorted(path.relative_to(ROOT).as_posix() for path in paths)


@pytest.mark.parametrize(("family", "platform"), RUNNERS)
@pytest.mark.parametrize("gate", JUDGING)
def test_a_gate_has_what_it_imports(family: str, platform: str, gate: str) -> None:
    needed = closure("gate.py", f"{gate}/gate.py", *RUNNERS[family, platform], *told(platform))
    has = given(action_of(family, platform, gate))

    assert names(needed - has) == [], "imported, and missing in rules/harness/judge_files.py"
    assert names(has - needed) == [], "listed in rules/harness/judge_files.py, and not imported"


@pytest.mark.parametrize(
    ("gate", "platform", "family"),
    [(*where, family) for where, families in WATCHED.items() for family in sorted(families)],
)
def test_a_gate_on_request_has_what_it_imports(gate: str, platform: str, family: str) -> None:
    runners = COUNTING.get((gate, family), ())
    needed = closure("gate.py", f"{gate}/gate.py", *runners, *told(platform))
    has = given(action_of(family, platform, gate))

    assert names(needed - has) == [], "imported, and missing in rules/harness/judge_files.py"
    assert names(has - needed - WHOLE) == [], "listed there, and not imported"


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_the_choice_of_a_baseline_has_what_it_imports(platform: str) -> None:
    needed = closure(
        "gate.py", "baseline/gate.py", *RUNNERS["torch2hip", platform], *told(platform)
    )
    assert names(needed ^ given(action_of("torch2hip", platform, "baseline"))) == []


def test_a_score_is_arithmetic() -> None:
    has = given(action_of("hip2hip", "cpu", "score"))
    assert names(has) == names(closure("score.py"))
    assert not {p for p in has if p.is_relative_to(TOOLS / "runners")}


@pytest.mark.parametrize(("family", "platform"), RUNNERS)
def test_a_check_has_what_its_gates_import(family: str, platform: str) -> None:
    gates = ["correctness/gate.py", "perf/gate.py"]
    if family in WATCHED.get(("analyze", platform), ()):
        gates += ["analyze/gate.py", *COUNTING.get(("analyze", family), ())]
    needed = closure("gate.py", *gates, *RUNNERS[family, platform], *told(platform))
    has = given(action_of(family, platform, "agent", "random"), "check/tools/")

    assert names(needed ^ has) == []


def test_a_proof_has_what_it_imports() -> None:
    """It starts no runner; what launches one comes with every judge."""
    listed = {
        path
        for name in GATE_FILES["proof"]
        for path in ((TOOLS / name).rglob("*.py") if "." not in name else [TOOLS / name])
    }
    needed = {p for p in closure("gate.py", "proof/gate.py") if p.is_relative_to(TOOLS)}

    assert names(needed - listed) == []
    assert names(listed - needed - WHOLE) == []


def test_every_module_of_the_judge_is_used_by_some_gate() -> None:
    used = {
        path
        for (family, platform) in RUNNERS
        for gate in JUDGING
        for path in given(action_of(family, platform, gate))
    }
    used |= {
        path
        for (gate, platform), families in WATCHED.items()
        for family in families
        for path in given(action_of(family, platform, gate))
    }
    used |= given(action_of("hip2hip", "cpu", "score"))
    used |= given(action_of("torch2hip", "cpu", "baseline"))
    used |= set((TOOLS / "proof").rglob("*.py"))
    used |= {TOOLS / path for path in COMPILE_FILES}
    assert names(set(TOOLS.rglob("*.py")) - used) == []


@pytest.mark.parametrize("supervision", [False, True])
def test_the_sandbox_kit_is_whole(supervision: bool) -> None:
    """What a rule gets of ``kabuild/sandbox`` imports nothing else of kabuild."""
    action = action_of("hip2hip", "cpu", "agent", "random")
    below = "tools/sandbox/" if supervision else "check/tools/"
    kit = {path for path in given(action, below) if path.is_relative_to(SANDBOX)}
    assert len(kit) == (9 if supervision else 4)
    for path in kit:
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                assert not (node.module or "").startswith("kabuild"), path
                if node.level:
                    wanted = [node.module] if node.module else [a.name for a in node.names]
                    assert {SANDBOX / f"{name}.py" for name in wanted} <= kit, path
