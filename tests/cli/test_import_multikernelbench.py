"""``kabuild import multikernelbench`` on a checkout of our own, in the forms of its tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.testkit.cli import CliWorkspace
from tests.testkit.visitors import visited

HEAD = "import json\nimport os\nimport numpy as np\nimport torch\nimport torch.nn as nn\n"
PLAIN = (
    HEAD
    + """
class Model(nn.Module):
    def forward(self, a):
        return a.exp()

rows = 64
cols = 32

def get_inputs():
    return [torch.rand(rows, cols)]

def get_init_inputs():
    return []
"""
)
CASES = (
    HEAD
    + """
class Model(nn.Module):
    def forward(self, x, bias, scale):
        return x * scale + bias

def get_input_groups():
    cases = os.path.join(os.path.dirname(__file__), "1_shift.json")
    groups = []
    with open(cases, "r") as file:
        for line in file:
            x, bias, scale = json.loads(line)["inputs"]
            kind = {"float32": torch.float32, "float16": torch.float16}[x["dtype"]]
            drawn = torch.tensor(np.random.uniform(-1, 1, x["shape"])).to(kind)
            groups.append([drawn, torch.randn(bias["shape"], dtype=kind), scale["value"]])
    return groups

def get_init_inputs():
    return []
"""
)


def _case(rows: int, cols: int, kind: str = "float32", scale: float = 0.5) -> str:
    tensors = {"x": [rows, cols], "bias": [cols]}
    inputs: list[dict[str, object]]
    inputs = [{"name": n, "type": "tensor", "dtype": kind, "shape": s} for n, s in tensors.items()]
    inputs.append({"name": "scale", "type": "attr", "dtype": "float", "value": scale})
    return json.dumps({"inputs": inputs}) + "\n"


GOOD = (
    _case(2048, 8192, "float16") + _case(16, 48) + _case(32, 64) + _case(24, 48, scale=2.0) + "\n"
)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> CliWorkspace:
    """A workspace beside a checkout, whose tasks were imported."""
    workspace = CliWorkspace.make(tmp_path_factory.mktemp("import"))
    for name, text in (
        ("matmul/exponential.py", PLAIN),
        ("matmul/__init__.py", ""),
        ("npukernelbench_level0/1_shift.py", CASES),
        ("npukernelbench_level0/1_shift.json", GOOD),
        ("npukernelbench_level0/2_broken.py", CASES.replace("1_shift", "2_broken")),
        ("npukernelbench_level0/2_broken.json", '{"inputs": 3}\nnot json\n'),
    ):
        workspace.write(f"../bench/reference/{name}", text)
    ran = workspace.run("import", "multikernelbench", "../bench", "--name=mkb")
    assert ran.code == 0, ran.err
    assert "@mkb: 2 of 3 tasks imported\n  licence: MIT; bundles may" in ran.out, ran.out
    return workspace


def test_every_task_is_imported_or_left_out_for_a_reason(imported: CliWorkspace) -> None:
    listed = dict(
        line.split("  ", 1) for line in imported.run("import", "--list", "@mkb").out.splitlines()
    )

    assert listed == {
        "@mkb//matmul/exponential": "imported",
        "@mkb//npukernelbench_level0/1_shift": "imported",
        "@mkb//npukernelbench_level0/2_broken": "NO_ENTRY  2_broken.json has no case that can be "
        "read",
    }


def test_the_largest_single_precision_case_is_shown_and_cases_like_it_are_configs(
    imported: CliWorkspace,
) -> None:
    lock = (imported.root / "imports/mkb.lock.toml").read_text()

    for line in (
        'call = "y = ModelNew()(x0, x1, x2)"',
        'inputs = { x0 = "T[x_0, x_1]", x1 = "T[x_1]" }',
        "scalars = { x2 = 0.5 }",
        "configs = [{ x_0 = 32, x_1 = 64 }, { x_0 = 16, x_1 = 48 }]",
    ):
        assert line in lock, lock


@pytest.mark.parametrize("task", ["matmul/exponential", "npukernelbench_level0/1_shift"])
def test_an_imported_module_is_judged(imported: CliWorkspace, task: str) -> None:
    text = (imported.root / f"../bench/reference/{task}.py").read_text()
    right = text.replace("class Model(", "class ModelNew(")
    wrong = right.replace("a.exp()", "a.sin()").replace("x * scale", "x")
    assert wrong != right

    for kernel, code, verdict in ((right, 0, "PASS"), (wrong, 3, "FAIL")):
        imported.write("kernel.py", kernel)
        flags = ("--solution=kernel.py", "--gates=compile,correctness", "--json")
        ran = imported.run("test", f"@mkb//{task}", *flags)
        assert (ran.code, ran.gate("correctness")["verdict"]) == (code, verdict), ran.out


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("npukernelbench_level0/1_shift.json", _case(8, 8), "1_shift.json changed since it was"),
        ("matmul/exponential.py", "", "exponential.py changed since it was imported"),
        ("matmul/exponential.py", None, "exponential.py"),
    ],
)
def test_a_file_that_changed_or_is_missing_is_named(
    imported: CliWorkspace, tmp_path: Path, file: str, text: str | None, said: str
) -> None:
    copy = imported.copy(tmp_path)
    source = imported.root / "../bench"
    for path in source.rglob("*.*"):
        copy.write(f"../bench/{path.relative_to(source)}", path.read_text())
    target = copy.root / "../bench/reference" / file
    target.unlink() if text is None else target.write_text(text)

    tested = copy.run("test", "@mkb//...", "--agent=none", "--gates=compile")

    assert tested.code == 1
    assert said in tested.err
    assert "Traceback" not in tested.err


def test_an_agent_works_on_an_imported_task(imported: CliWorkspace) -> None:
    assert "BRIEF.md" in visited(imported, "@mkb//matmul/exponential")
