"""``kabuild import aka`` on a checkout of our own, in the forms of AgentKernelArena's tasks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.aka_tasks import (
    COMPARES,
    COUNTING,
    FUNCTIONAL,
    IN_PART,
    IN_PLACE,
    KERNEL,
    MODULE,
    RUNNER,
    SCRIPTED,
    TIMING,
    WHOLE,
)
from tests.testkit.cli import CliWorkspace
from tests.testkit.visitors import visited

ROOT = Path(__file__).parents[2]
INTERPRETER = "its kernel fails in Triton's interpreter: OutOfBoundsError:"
SCHEMA_2 = """\
schema_version: 2
description: Double each element.
candidate:
  language: triton
  editable:
  - source/kernel.py
  entrypoints:
  - {file: source/kernel.py, kind: function, symbol: _row}
evaluation:
  runner: [python3, evaluate.py]
"""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> CliWorkspace:
    """A workspace beside a checkout, whose tasks were imported."""
    workspace = CliWorkspace.make(tmp_path_factory.mktemp("import"))
    files = {
        "torch2hip/gpumode/1_Scaled/pytorch_code_functional/py_1_Scaled_func.py": FUNCTIONAL,
        "hip2hip/gpumode/InPlace/pytorch_code_functional/py_2_InPlace_func.py": IN_PLACE,
        "torch2hip/gpumode/3_Halved/pytorch_code_functional/py_3_Halved_func.py": FUNCTIONAL,
        "triton2triton/rocmbench/easy/halve/halve.py": WHOLE,
        "triton2triton/rocmbench/easy/in_part/in_part.py": IN_PART,
        "triton2triton/rocmbench/easy/counting/counting.py": COUNTING,
        "torch2flydsl/softmax/kernel.py": "import flydsl",
        "hip2hip/others/boxes/scripts/task_runner.py": "raise SystemExit",
    }
    for name, module in (
        ("torch2hip/gpumode/1_Scaled", MODULE),
        ("torch2hip/gpumode/3_Halved", MODULE.replace("* 0.5)", "* 0.25)")),
    ):
        files[f"{name}/pytorch_code_module/py_it.py"] = module
        files[f"{name}/eval_tools/correctness_check.py"] = COMPARES
    for name, check in SCRIPTED.items():
        files[f"triton2triton/vllm/{name}/source/kernel.py"] = KERNEL
        files[f"triton2triton/vllm/{name}/scripts/task_runner.py"] = RUNNER.replace("CHECK", check)
    for path, text in files.items():
        workspace.write(f"../bench/tasks/{path}", text)
    homes = {"/".join(path.split("/")[:3]) for path in files} - {
        "triton2triton/rocmbench/easy",
        "torch2flydsl/softmax/kernel.py",
    }
    tested = {f"triton2triton/rocmbench/easy/{name}" for name in ("halve", "in_part", "counting")}
    for home in homes | tested | {"torch2flydsl/softmax"}:
        workspace.write(f"../bench/tasks/{home}/config.yaml", "task_type: any\n")
    home = "../bench/tasks/triton2triton/vllm/returned"
    workspace.write(f"{home}/config.yaml", SCHEMA_2)
    workspace.write(
        f"{home}/source/a_part.py", "raise RuntimeError('a part that is not editable')\n"
    )
    workspace.write("../bench/tasks/triton2triton/vllm/later/config.yaml", "schema_version: 3\n")
    for home in tested:
        workspace.write(f"../bench/tasks/{home}/performance_utils_pytest.py", TIMING)
    ran = workspace.run("import", "aka", "../bench")
    assert ran.code == 0, ran.err
    assert "@aka: 16 of 26 tasks imported\n  licence: Apache-2.0" in ran.out, (
        ran.out + workspace.run("import", "--list", "@aka").out
    )
    return workspace


def test_every_task_is_imported_or_left_out_for_a_reason(imported: CliWorkspace) -> None:
    listed = dict(
        line.removeprefix("@aka//").split("  ", 1)
        for line in imported.run("import", "--list", "@aka").out.splitlines()
    )

    vllm = "triton2triton/vllm"
    done = {name for name, what in listed.items() if what == "imported"}
    assert done == {
        "torch2hip/gpumode/1_Scaled",
        "torch2hip/gpumode/3_Halved",
        "hip2hip/gpumode/InPlace",
        *(f"{vllm}/{name}" for name in ("returned", "inline", "partly")),
        *(
            f"{vllm}/{name}"
            for name in ("early", "rounded", "scaled", "eight_bits", "eight_bits_partly", "begun")
        ),
        "triton2triton/rocmbench/easy/halve",
        "triton2triton/rocmbench/easy/in_part",
        "triton2triton/rocmbench/easy/counting",
        f"{vllm}/drawn",
    }
    for name, said in (
        (f"{vllm}/unchecked", "CHECK_FOOLED  its script accepts the results of another call"),
        (
            f"{vllm}/unwritten",
            "OUTPUT_UNCHECKED  its script does not look at 'y1', which its kernel",
        ),
        (f"{vllm}/fooled", "CHECK_FOOLED  its script accepts zeros"),
        (
            f"{vllm}/addressed",
            f"NEEDS_GPU  {INTERPRETER} load of 2 bytes out of bounds: in none of its tensors, 96",
        ),
        (f"{vllm}/wrong", "REFERENCE_DIFFERS  its script refuses its own kernel: wrong"),
        (f"{vllm}/several", "SEVERAL_CALLS  its check calls the module more than once"),
        (f"{vllm}/uncalled", "NO_ENTRY  its script calls no function with tensors"),
        ("torch2flydsl/softmax", "NEEDS_PACKAGE  its kernels are written in FlyDSL"),
        (f"{vllm}/later", "UNKNOWN_SCHEMA  its config.yaml has schema_version 3"),
        ("hip2hip/others/boxes", "SCRIPT  its script judges the whole program"),
    ):
        assert listed[name].startswith(said), listed[name]
    assert len(listed) == 26


def test_the_lock_says_what_the_scripts_and_models_pass(imported: CliWorkspace) -> None:
    lock = (imported.root / "imports/aka.lock.toml").read_text()

    for line in (
        'call = "y = scaled_fn(x=x, weight=weight, factor=factor, training=False)"',
        'state = { weight = "T[inputs_2]" }',
        'call = "_ = scaled_fn(x=x, weight=weight, factor=factor, training=False)"',
        'updates = ["x"]',
        'call = "y = twice(x=x, scale=None)"',
        'inputs = { x = "f16[rows, cols]" }',
        "configs = [{ rows = 4, cols = 24 }, { rows = 8, cols = 48 }, { rows = 8, cols = 17 }]",
        'call = "add_twice(x=x, sums=sums)"',
        'updates = ["sums"]',
        'call = "y = rounded(x=x)"',
        'compare = { y = "quantised" }',
        'call = "y = scaled(x=x, factor=factor)"',
        'outputs = { y = "f8e4m3fnuz[rows, cols]" }',
        'inputs = { x = "f16[rows, 24]" }',  # the factor follows from the columns
        'call = "halve[(2,)](x=x, y=y, n=100, SIZE=64, num_warps=4)"',
        'tier = "script"',
        'call = "_, y1 = begun(x=x)"',  # neither kernel nor script writes the rest of the first
    ):
        assert line in lock, lock


@pytest.mark.parametrize(
    ("task", "text", "wrong", "reason"),
    [
        ("triton2triton/vllm/returned", KERNEL, ("* 2.0\n    if", "* 2.1\n    if"), "WRONG_RESULT"),
        (
            "triton2triton/vllm/returned",
            KERNEL,
            ("    return y\n", "    x.zero_()\n    return y.zero_()\n"),
            "INPUT_MUTATED",
        ),
        ("triton2triton/vllm/inline", KERNEL, ("if add:", "if not add:"), "WRONG_RESULT"),
        ("triton2triton/vllm/early", KERNEL, ("* 2.0\n    if", "* 2.1\n    if"), "WRONG_RESULT"),
        ("triton2triton/vllm/rounded", KERNEL, ("* 10.0", "* 11.0"), "WRONG_RESULT"),
        ("triton2triton/vllm/eight_bits", KERNEL, ("* 8.0", "* 9.0"), "WRONG_RESULT"),
        ("triton2triton/vllm/eight_bits_partly", KERNEL, ("* 8.0", "* 9.0"), "WRONG_RESULT"),
        ("triton2triton/rocmbench/easy/halve", WHOLE, ("* 0.5", "* 0.6"), "WRONG_RESULT"),
        ("triton2triton/rocmbench/easy/counting", COUNTING, ("% 64, m", "% 32, m"), "WRONG_RESULT"),
        ("torch2hip/gpumode/1_Scaled", FUNCTIONAL, ("x * weight *", "x *"), "WRONG_RESULT"),
        ("hip2hip/gpumode/InPlace", IN_PLACE, ("x.mul_(weight)", "x.mul_(1.0)"), "WRONG_RESULT"),
    ],
)
def test_an_imported_task_is_judged(
    imported: CliWorkspace, task: str, text: str, wrong: tuple[str, str], reason: str
) -> None:
    bad = text.replace(*wrong)
    assert bad != text

    for kernel, code, said in ((text, 0, ""), (bad, 3, reason)):
        imported.write("kernel.py", kernel)
        flags = ("--solution=kernel.py", "--gates=compile,correctness", "--json")
        ran = imported.run("test", f"@aka//{task}", *flags)
        assert (ran.code, ran.gate("correctness")["reason"]) == (code, said), ran.out


CLAIMS = """
import atexit, json, os, pathlib
print("correctness: PASS")
os.write(1, b"True\\n")
def _report():
    for name in ("build/performance_report.json", "build/correctness_report.json",
                 "task_result.yaml"):
        try:
            pathlib.Path(name).parent.mkdir(exist_ok=True)
            pathlib.Path(name).write_text(json.dumps({"status": "ok", "speedup_ratio": 1000.0}))
        except OSError:
            pass
_report()
atexit.register(_report)
def twice(x, scale=None):
    return torch.zeros_like(x)
"""
LEAVES = """
import os
def twice(x, scale=None):
    os._exit(0)
"""
NOT_NUMBERS = """
def twice(x, scale=None):
    return torch.full_like(x, float("inf")) - torch.full_like(x, float("inf"))
"""


@pytest.mark.parametrize(
    ("ending", "reasons"),
    [
        ("", {""}),
        ("\ndef twice(x, scale=None):\n    return x * 2.5\n", {"WRONG_RESULT"}),
        (CLAIMS, {"WRONG_RESULT"}),
        (LEAVES, {"CRASH", "PROTOCOL_VIOLATION"}),
        (NOT_NUMBERS, {"WRONG_RESULT", "INCOMPLETE_OUTPUT"}),
    ],
    ids=["right", "wrong", "claims", "leaves", "not numbers"],
)
def test_a_script_judges_where_no_declaration_can(
    imported: CliWorkspace, ending: str, reasons: set[str]
) -> None:
    """Its sizes are drawn; what a candidate prints or how it ends is no verdict."""
    imported.write("kernel.py", KERNEL + ending)
    flags = ("--solution=kernel.py", "--gates=compile,correctness", "--json")
    ran = imported.run("test", "@aka//triton2triton/vllm/drawn", *flags)

    assert ran.gate("correctness")["reason"] in reasons, ran.out
    assert ran.code == (3 if ending else 0)


SLOW = """
import sys
from pathlib import Path
from imported import script_tasks, scripted

for seconds in sys.argv[2:]:
    script_tasks.LONGEST = float(seconds)
    runner = "scripts/task_runner.py"
    attrs, _ = scripted.learn_runner(Path(sys.argv[1]), "source/kernel.py", runner)
    print(attrs["inputs"]["x"])
"""


def test_a_slow_script_keeps_its_own_sizes(imported: CliWorkspace) -> None:
    """Its search for a shape space ends with the time for it, and not the whole import."""
    home = imported.root / "../bench/tasks/triton2triton/vllm/returned"
    paths = [str(ROOT / "rules/imports/tools"), str(ROOT / "rules/harness/tools")]
    ran = subprocess.run(
        [sys.executable, "-c", SLOW, str(home), "-1", "60"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.splitlines() == ["f16[4, 24]", "f16[rows, cols]"], ran.stderr


def test_a_script_refuses_what_only_it_looks_at(imported: CliWorkspace) -> None:
    for kernel, code in ((IN_PART, 0), (IN_PART.replace("* 0.5", "* 0.6"), 3)):
        imported.write("kernel.py", kernel)
        flags = ("--solution=kernel.py", "--gates=compile,correctness", "--json")
        ran = imported.run("test", "@aka//triton2triton/rocmbench/easy/in_part", *flags)
        assert ran.code == code, ran.out


def test_what_a_script_accepts_decides_whether_its_task_is_admitted(
    imported: CliWorkspace,
) -> None:
    """The original's results, which are in half precision, are not what it compares with."""
    for task, reason in (("vllm/drawn", ""), ("rocmbench/easy/in_part", "TOO_TOLERANT")):
        what = f"@aka//triton2triton/{task}"
        ran = imported.run("validate", what, "--samples=2", "--json")
        assert ran.gate("admission")["reason"] == reason, ran.out


@pytest.mark.parametrize(
    ("task", "fooled"),
    [("returned", "inputs zeroed, zeros"), ("early", "")],
)
def test_what_is_wrong_and_passes_in_a_script_is_a_finding(
    imported: CliWorkspace, task: str, fooled: str
) -> None:
    """``returned`` computes what it expects after the call, and ``early`` before it."""
    ran = imported.run("validate", f"@aka//triton2triton/vllm/{task}", "--samples=2", "--json")

    proof = ran.gate("proof")
    assert proof["verdict"] == "PASS", ran.out
    said = f"ORIGINAL_CHECK_FOOLED: {fooled}" if fooled else "its check was not fooled"
    assert said in proof["summary"], proof


def test_a_function_is_proved_against_the_module_that_it_stands_for(
    imported: CliWorkspace,
) -> None:
    """The check finds the module's weights by their names; one module computes something else."""
    ran = imported.run("import", "--prove", "@aka//torch2hip/...")

    assert ran.code == 3, ran.out + ran.err
    assert "1 of 2 tasks mean what their originals do" in ran.out
    assert "@aka//torch2hip/gpumode/3_Halved  REJECTED (ORIGINAL_DIFFERS)" in ran.out
    assert "same results" in ran.out


@pytest.mark.parametrize("file", ["scripts/task_runner.py", "source/kernel.py"])
def test_a_file_that_changed_or_is_missing_is_named(
    imported: CliWorkspace, tmp_path: Path, file: str
) -> None:
    path = imported.root / "../bench/tasks/triton2triton/vllm/returned" / file
    text = path.read_text()
    said = []
    try:
        path.write_text(text + "\n# changed\n")
        said.append(imported.run("test", "@aka//triton2triton/vllm/returned", "--agent=none"))
        path.unlink()
        said.append(imported.run("test", "@aka//triton2triton/vllm/returned", "--agent=none"))
    finally:
        path.write_text(text)

    assert [ran.code for ran in said] == [1, 1]
    assert f"{file} changed since it was imported" in said[0].err
    assert file in said[1].err
    assert "Traceback" not in said[1].err


def test_an_agent_works_on_an_imported_task(imported: CliWorkspace) -> None:
    assert "kernel.py" in visited(imported, "@aka//triton2triton/vllm/returned")
