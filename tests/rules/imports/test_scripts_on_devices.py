"""Scripts compute on the CPU what they do not ask a GPU to, wherever the judge computes."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from imported import script_tasks, scripted, scripts
from imported.script_tasks import Learning, expected
from imported.scripts import Script

MODULE = """
import torch
import triton

def twice(x):
    return x * 2.0
"""
RUNNER = """
import importlib.util, os

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TEST_SHAPES = [(4, 8), (64, 8), (1024, 8)]

def load_module():
    found = importlib.util.spec_from_file_location("kernel", os.path.join(HERE, "source/kernel.py"))
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module

def reference(x):
    import torch
    out = torch.zeros(x.shape)
    for row in range(x.shape[0]):
        out[row] = x[row].float() * 2.0
    return out

def run_correctness():
    import torch
    mod = load_module()
    for i, (rows, cols) in enumerate(TEST_SHAPES):
        torch.manual_seed(42 + i)
        x = torch.randn(rows, cols, device="cuda")
        result = mod.twice(x)
        if not torch.allclose(result.cpu(), reference(x.cpu())):
            return False, "wrong"
    return True, None
"""


@pytest.fixture
def script(tmp_path):
    for name, text in {"source/kernel.py": MODULE, "scripts/task_runner.py": RUNNER}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    return Script(tmp_path / "scripts/task_runner.py", tmp_path / "source/kernel.py")


@pytest.fixture
def told(script):
    return Learning(script).learn()[1]


def test_a_script_makes_its_tensors_where_it_would_without_a_judge(script, told):
    """The judge makes those of no named device on its own one; ``meta`` takes its place here."""
    x = torch.randn(16, 8)
    with torch.device("meta"):
        assert torch.zeros(1).is_meta
        found = expected(script, told, {"rows": 16, "cols": 8, "x": x})

    assert found["y"].equal(x.double() * 2.0)


def test_a_script_that_ends_early_says_why(script, told):
    ended = "if not torch", "return False, 'no luck today'\n        if not torch"
    script.runner.write_text(RUNNER.replace(*ended))

    with pytest.raises(RuntimeError, match="did not compare 'y': no luck today"):
        expected(script, told, {"rows": 16, "cols": 8, "x": torch.randn(16, 8)})


def test_cases_that_take_a_script_too_long_are_left_out(script, monkeypatch):
    every = [{"rows": rows, "cols": 8} for rows in (4, 64, 1024)]
    assert [*Learning(script).learn()[0]["configs"]] == every
    monkeypatch.setattr(script_tasks, "MOST_STEPS", 1000)  # there are about four in each row
    fewer = Learning(script).learn()[0]

    assert [*fewer["configs"]] == every[:2]
    assert fewer["dims"]["rows"] == "1..64"


def test_a_script_that_walks_runs_on_the_processor_beside_a_gpu(script, monkeypatch):
    """Nothing stands in for the GPU there: the judge uses it at the same time."""
    sizes = {"rows": 4, "cols": 8}
    torch.manual_seed(3)
    here = script.watch(sizes, "cpu", briefly=True)
    monkeypatch.setattr(scripts, "as_on_a_gpu", None)
    walking = replace(script, walks=True)
    torch.manual_seed(3)
    beside = walking.watch(sizes, "cuda:0", briefly=True)

    assert beside.values["x"].equal(here.values["x"])
    assert [walking.beside(device) for device in ("cuda", "cuda:0", "cpu", "meta")] == [
        True,
        True,
        False,
        False,
    ]
    assert not script.beside("cuda")


def test_what_such_a_script_expects_is_where_the_call_was(script, told, monkeypatch):
    asked = []

    def beside(self, device):
        asked.append(device)
        return len(asked) == 1

    monkeypatch.setattr(Script, "beside", beside)
    x = torch.randn(16, 8)
    found = expected(script, told, {"rows": 16, "cols": 8, "x": x})

    assert found["y"].equal(x.double() * 2.0)
    assert found["y"].device == x.device
    assert len(asked) > 1  # on the processor it is asked again


@pytest.mark.parametrize(("many", "walks"), [(20, True), (100_000, False)])
def test_a_script_of_many_steps_walks(script, monkeypatch, many, walks):
    monkeypatch.setattr(scripted, "MANY", many)
    home = script.runner.parents[1]
    attrs, _ = scripted.learn_runner(home, "source/kernel.py", "scripts/task_runner.py")

    assert attrs["parameters"].get("walks", False) is walks
    assert scripted.Scripted(home, attrs["parameters"])._script.walks is walks


FIRST = RUNNER.replace(
    "        result = mod.twice(x)\n",
    "        expected = reference(x.cpu())\n        result = mod.twice(x)\n",
).replace("result.cpu(), reference(x.cpu())", "result.cpu(), expected")
"""It computes what it expects before the call."""


def learnt(script, text):
    script.runner.write_text(text)
    home = script.runner.parents[1]
    attrs, _ = scripted.learn_runner(home, "source/kernel.py", "scripts/task_runner.py")
    return scripted.Scripted(home, attrs["parameters"]), attrs["parameters"]


def test_to_draw_a_call_nothing_is_computed_that_its_script_expects(script, monkeypatch):
    monkeypatch.setattr(scripted, "MANY", 20)
    task, told = learnt(script, FIRST)
    config = {"rows": 64, "cols": 8}

    def drawn():
        torch.manual_seed(3)
        return task.inputs(told, config, "cpu")["x"]

    before = drawn()
    counted = "import torch\n    open('ran', 'a').write('.')\n    out = torch"
    script.runner.write_text(FIRST.replace("import torch\n    out = torch", counted))
    monkeypatch.chdir(script.runner.parent)

    assert drawn().equal(before)
    assert not (script.runner.parent / "ran").exists()
    assert task.reference(told, {**config, "x": before})["y"].equal(before.double() * 2.0)
    assert (script.runner.parent / "ran").read_text() == "."


@pytest.mark.parametrize(
    "new",
    [
        "x = torch.randn(rows, cols) + 0 * expected",
        "x = torch.randn(rows, cols)",
        "x = w.add_(1)",
        "x = w if expected.sum() else w",
        "x = w if (expected == expected).all() else -w",
        "x = w if expected.shape else torch.randn(rows, cols)",
    ],
    ids=["is an argument", "draws", "changes", "is asked", "is compared", "has a shape"],
)
def test_what_a_call_may_follow_from_is_computed(script, new):
    text = FIRST.replace("        result =", f"        {new}\n        result =")
    text = text.replace("x = torch.randn(rows, cols, device", "w = torch.randn(rows, cols, device")
    text = text.replace("reference(x.cpu())", "reference(w)")
    text = text.replace("    for row in", "    x.mul_(2) + torch.rand(1)\n    for row in")
    script.runner.write_text(text)

    assert script.watch({"rows": 4, "cols": 8}, "cpu", briefly=True).entry == "twice"
    assert not scripted._draws_apart(script, {})
