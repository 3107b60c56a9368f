"""``kabuild import --prove`` and the audit, on a checkout of our own writing."""

from __future__ import annotations

from pathlib import Path

import pytest

from kabuild.loading import builtin_root
from tests.testkit.cli import CliWorkspace

MODULE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.mix = nn.Linear(features, features)
        self.scale = nn.Parameter(torch.ones(features))
    def forward(self, x):
        return self.scale * self.mix(x)

rows = 96
features = 32

def get_inputs():
    return [torch.rand(rows, features)]

def get_init_inputs():
    return [features]
"""
SMALL = MODULE.replace("self.scale * self.mix(x)", "1e-5 * self.scale * self.mix(x)")
CHECK = """
import torch
from absent_package import needed_elsewhere

class KernelExecResult:
    "Replaced by ours, as the benchmark's needs a package."

def set_seed(seed):
    torch.manual_seed(seed)
    torch.cuda.manual_seed(seed)

def get_torch_dtype_from_string(precision):
    return torch.float32

def get_tolerance_for_precision(precision):
    return TOLERANCE

def _process_input_tensor(value, device, backend="cuda", precision=torch.float32):
    return value.to(device=device)

def register_and_format_exception(kind, message, metadata):
    return {**metadata, kind: message}

def get_error_name(error):
    return type(error).__name__

def run_and_check_correctness(
    original, new, get_inputs, metadata, num_correct_trials, seed=42, device=None,
    precision=torch.float32,
):
    tolerance = get_tolerance_for_precision(precision)
    for trial in range(num_correct_trials):
        set_seed(seed + trial)
        inputs = [_process_input_tensor(value, device) for value in get_inputs()]
        with torch.no_grad():
            expected, got = original(*inputs), new(*inputs)
        torch.cuda.synchronize(device=device)
        if not torch.allclose(expected, got, atol=tolerance, rtol=tolerance):
            metadata = register_and_format_exception("differs", f"trial {trial}", metadata)
            return KernelExecResult(correctness=False, metadata=metadata)
    return KernelExecResult(correctness=True, metadata=metadata)
"""
TASKS = {"level1/1_Mix": MODULE, "level1/2_Small": SMALL, "level1/3_Copy": MODULE}
EVAL = "../bench/src/kernelbench/eval.py"


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> CliWorkspace:
    """A workspace beside a checkout, whose tasks were imported with their check."""
    workspace = CliWorkspace.make(tmp_path_factory.mktemp("prove"))
    for name, text in TASKS.items():
        workspace.write(f"../bench/KernelBench/{name}.py", text)
    workspace.write(EVAL, CHECK.replace("return TOLERANCE", "return 1e-4"))
    ran = workspace.run("import", "kernelbench", "../bench", "--name=kb")
    assert "@kb: 3 of 3 tasks imported" in ran.out, ran.err
    return workspace


def test_tasks_are_proved_and_checks_are_examined(imported: CliWorkspace) -> None:
    ran = imported.run("import", "--prove", "@kb")

    assert ran.code == 0, ran.out + ran.err
    rows = {line[:22].strip(): line[22:].split() for line in ran.out.splitlines()}
    assert rows["the original"] == ["reduced", "3", "3", "0", "0", "0"], ran.out
    assert rows["zeros"] == ["reduced", "3", "0", "1", "0", "2"], ran.out
    assert rows["noise 0.1"] == ["reduced", "3", "3", "0", "0", "0"], ran.out
    assert "3 of 3 tasks mean what their originals do" in ran.out
    assert "checks with findings: 1; see kabuild report --format=audit" in ran.out


def test_the_audit_names_tasks_and_the_command_that_shows_them(imported: CliWorkspace) -> None:
    imported.run("report", "@kb//...", "--format=audit", "--samples=2", "-o", "audit.md")
    page = (imported.root / "audit.md").read_text()

    assert "kabuild validate @kb//... --samples=2 --platform=cpu" in page
    assert (
        "| `ORIGINAL_CHECK_FOOLED` | zeros | 1 | `kabuild validate @kb//level1/2_Small` |" in page
    )
    assert "| of another's origin | 1 |" in page
    assert "- `@kb//level1/1_Mix`, `@kb//level1/3_Copy`" in page
    ran = imported.run("validate", "@kb//level1/2_Small", "--samples=2")
    assert "ORIGINAL_CHECK_FOOLED" in ran.out


def test_an_audit_is_of_imports(imported: CliWorkspace) -> None:
    ran = imported.run("report", "results.kab", "--format=audit")

    assert ran.code == 2
    assert "results.kab holds results; an audit is of imported tasks" in ran.err


def test_a_check_that_refuses_its_own_original_is_a_finding(imported: CliWorkspace) -> None:
    broken = CHECK.replace("return TOLERANCE", "return 1e-4").replace("value.to(", "value.nothing(")
    try:
        imported.write(EVAL, broken)
        imported.run("import", "kernelbench", "../bench", "--name=kb")
        ran = imported.run("validate", "@kb//level1/1_Mix:1_Mix.proof", "--json")
    finally:
        imported.write(EVAL, CHECK.replace("return TOLERANCE", "return 1e-4"))
        imported.run("import", "kernelbench", "../bench", "--name=kb")

    assert (ran.code, ran.gate("proof")["verdict"]) == (0, "PASS"), ran.out
    assert "ORIGINAL_CHECK_FAILS: " in ran.gate("proof")["summary"]


def test_a_check_that_refuses_what_is_more_exact_is_a_finding(tmp_path: Path) -> None:
    """As on NVIDIA's GPUs: there the original's convolutions have the digits of TF32."""
    coarse = "self.scale * self.mix(x) * (1 + 2e-5 * torch.backends.cudnn.allow_tf32)"
    workspace = CliWorkspace.make(tmp_path)
    text = MODULE.replace("self.scale * self.mix(x)", coarse)
    workspace.write("../bench/KernelBench/level1/1_Mix.py", text)
    workspace.write(EVAL, CHECK.replace("return TOLERANCE", "return 1e-6"))
    workspace.run("import", "kernelbench", "../bench", "--name=kb")
    ran = workspace.run("validate", "@kb//level1/1_Mix:1_Mix.proof", "--json")

    assert (ran.code, ran.gate("proof")["verdict"]) == (0, "PASS"), ran.out
    assert "EXACT_REFUSED: without TF32" in ran.gate("proof")["summary"]


@pytest.mark.parametrize(
    ("place", "instead", "wrong"),
    [
        ("tensors_at(n[INPUTS](),", "_doubled(n[INPUTS](),", "same inputs"),
        ("state_of(build(n[", "_halved(build(n[", "same state"),
    ],
)
def test_an_adapter_that_asks_another_question_is_found(
    imported: CliWorkspace, tmp_path: Path, place: str, instead: str, wrong: str
) -> None:
    """The workspace's own adapter and tools take precedence over those that ship."""
    helpers = (
        "def _doubled(given, paths):\n"
        "    return {n: 2 * t for n, t in tensors_at(given, paths).items()}\n\n\n"
        "def _halved(model):\n"
        "    return {n: t / 2 for n, t in state_of(model).items()}\n"
    )
    other = CliWorkspace.make(tmp_path)
    tools = builtin_root() / "rules/imports/tools"
    for file in tools.rglob("*.py"):
        text = file.read_text()
        if file.name == "models.py":
            assert place in text
            text = f"{text.replace(place, instead)}\n\n{helpers}"
        other.write(f"rules/imports/tools/{file.relative_to(tools)}", text)
    other.write("../bench/KernelBench/level1/1_Mix.py", MODULE)
    other.write(EVAL, CHECK.replace("return TOLERANCE", "return 1e-4"))
    assert other.run("import", "kernelbench", "../bench", "--name=kb").code == 0

    ran = other.run("import", "--prove", "@kb//level1/1_Mix")
    assert ran.code == 3, ran.out + ran.err
    assert "REJECTED (ORIGINAL_DIFFERS)" in ran.out
    assert wrong in ran.out


def test_what_has_no_known_check_cannot_be_proved(tmp_path: Path) -> None:
    workspace = CliWorkspace.make(tmp_path)
    workspace.write("../bench/KernelBench/level1/1_Mix.py", MODULE)
    assert workspace.run("import", "kernelbench", "../bench", "--name=kb").code == 0

    ran = workspace.run("import", "--prove", "@kb")
    assert ran.code == 4
    assert "no original check is known for @kb" in ran.err
