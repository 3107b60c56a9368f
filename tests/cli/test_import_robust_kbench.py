"""``kabuild import robust_kbench`` on a checkout of our own writing, in the forms of its tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.testkit.cli import CliWorkspace
from tests.testkit.visitors import visited

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
SCALED_NORM = (
    HEAD
    + """
def forward_fn(x, weight, bias, eps):
    return F.layer_norm(x, tuple(weight.shape), weight, bias, eps)

class Model(nn.Module):
    def __init__(self, width: int, eps: float = 1e-5, init_method: str = "standard"):
        super().__init__()
        draw = torch.ones if init_method == "standard" else torch.randn
        self.eps = eps
        self.weight = nn.Parameter(draw(width))
        self.bias = nn.Parameter(torch.zeros(width))
    def forward(self, x, fn=forward_fn):
        return fn(x, self.weight, self.bias, self.eps)

def get_inputs(rows: int = 16, width: int = 64):
    return [torch.randn(rows, width)]
"""
)
LOSS = (
    HEAD
    + """
def forward_fn(scores, classes, reduction):
    return F.cross_entropy(scores, classes, reduction=reduction)

class Model(nn.Module):
    def forward(self, scores, classes, fn=forward_fn):
        return fn(scores, classes, "mean")

def get_inputs(rows: int = 32, kinds: int = 10, spread: float = 2.0):
    return [torch.randn(rows, kinds) * (spread or 1.0), torch.randint(0, kinds, (rows,))]
"""
)
STATISTICS = (
    HEAD
    + """
def forward_fn(x, mean, var, bias=None):
    return F.batch_norm(x, mean, var, None, bias, True, 0.1, 1e-5)

class Model(nn.Module):
    def __init__(self, width: int = 24):
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("var", torch.ones(width))
    def forward(self, x, fn=forward_fn):
        return fn(x, self.mean, self.var, None)

def get_inputs(rows: int = 32, width: int = 24):
    return [torch.randn(rows, width)]
"""
)
RESIDUAL = (
    HEAD
    + """
def forward_fn(x, weight, shortcut=None):
    return F.linear(x, weight) + (x if shortcut is None else F.linear(x, shortcut))

class Model(nn.Module):
    def __init__(self, width: int = 24, out: int = 24):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out, width))
        self.shortcut = None if width == out else nn.Parameter(torch.randn(out, width))
    def forward(self, x, fn=forward_fn):
        return fn(x, self.weight, self.shortcut)

def get_inputs(rows: int = 16, width: int = 24):
    return [torch.randn(rows, width)]
"""
)
DATA = LOSS.replace('"mean")', '"mean" if scores.sum().item() else "sum")')
BACKWARD = (
    SCALED_NORM
    + """
class AutogradFunction(torch.autograd.Function):
    backward_fn = None
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        ctx.save_for_backward(x, weight)
        ctx.eps, ctx.shape = eps, tuple(weight.shape)
        return forward_fn(x, weight, bias, eps)
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        dx, dw, db = AutogradFunction.backward_fn((x,), grad_output, weight, ctx.eps, ctx.shape)
        return dx, dw, db, None
"""
)
ANSWER = """
import torch

def backward(saved, grad, weight, eps, shape):
    (x,) = saved
    var, mean = torch.var_mean(x, -1, keepdim=True, unbiased=False)
    scale = torch.rsqrt(var + eps)
    normed, wide = (x - mean) * scale, grad * weight
    inner = wide - wide.mean(-1, keepdim=True) - normed * (wide * normed).mean(-1, keepdim=True)
    return scale * inner, (grad * normed).sum(0), grad.sum(0)
"""
ALONE = BACKWARD.replace("AutogradFunction.backward_fn((x,), grad_output", "(x, weight, weight) #")
NUMBERS = STATISTICS.replace("bias=None", "momentum, bias=None").replace(
    "0.1, 1e-5", "momentum, 1e-5"
)
NUMBERS = NUMBERS.replace("self.var, None", "self.var, self.momentum").replace(
    '"mean", torch', '"momentum", torch.tensor(0.1))\n        self.register_buffer("mean", torch'
)


def _configs(single: dict[str, object], **multi: list[dict[str, object]]) -> str:
    """A file of configs: what all share is among the inputs' settings."""
    tables: dict[str, list[dict[str, object]]] = {
        f"{many}_{kind}_configs": [{}]
        for many in ("single", "multi")
        for kind in ("input", "init", "shared")
    }
    tables["single_shared_configs"] = [single]
    tables |= {f"multi_{kind}_configs": choices for kind, choices in multi.items()}
    return json.dumps(tables)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> CliWorkspace:
    """A workspace beside a checkout, whose tasks were imported."""
    workspace = CliWorkspace.make(tmp_path_factory.mktemp("import"))
    norm = _configs(
        {"rows": 16, "width": 128, "init_method": "random"},
        input=[{"rows": 16}, {"rows": 32}],
        init=[{"init_method": "random"}, {"init_method": "standard"}],
        shared=[{"width": 128}, {"width": 64}],
    )
    residual = _configs(
        {"rows": 40, "width": 24, "out": 24}, init=[{"out": 24}, {"out": 72}], input=[{"rows": 8}]
    )
    for name, text, configs in (
        ("residual/func_forward", RESIDUAL, residual),
        ("norm/func_forward", SCALED_NORM, norm),
        ("norm/func_backward", BACKWARD, norm),
        ("kernelbench/level_1/task_1/func_forward", LOSS, _configs({"rows": 48, "spread": None})),
        ("alone/func_backward", ALONE, norm),
        ("statistics/func_forward", STATISTICS, _configs({})),
        ("numbers/func_forward", NUMBERS, _configs({})),
        ("data/func_forward", DATA, _configs({})),
    ):
        home, _, way = name.rpartition("/func_")
        workspace.write(f"../bench/tasks/{home}/func_{way}.py", text)
        workspace.write(f"../bench/tasks/{home}/config_{way}.json", configs)
    workspace.write("../bench/tasks/kernelbench/level_1/task_1/1_Loss.py", LOSS)
    workspace.write("../bench/robust_kbench/__init__.py", "")
    ran = workspace.run("import", "robust_kbench", "../bench", "--name=rkb")
    assert ran.code == 0, ran.err
    assert "@rkb: 6 of 8 tasks imported\n  licence: Apache-2.0; bundles may" in ran.out, ran.out
    return workspace


def test_settings_that_pass_other_tensors_are_not_mixed(imported: CliWorkspace) -> None:
    """The largest of each setting together would pass a tensor that the task does not pass."""
    lock = (imported.root / "imports/rkb.lock.toml").read_text()

    assert 'call = "y = forward(x, weight, None)"' in lock
    assert 'state = { weight = "T[width, width]" }' in lock
    assert "configs = [{ rows = 40, width = 24 }, { rows = 8, width = 24 }]" in lock


def test_every_task_is_imported_or_left_out_for_a_reason(imported: CliWorkspace) -> None:
    listed = dict(
        line.split("  ", 1) for line in imported.run("import", "--list", "@rkb").out.splitlines()
    )

    assert listed["@rkb//norm"] == "imported"
    assert listed["@rkb//alone_backward"].startswith("DOES_NOT_RUN  its backward pass does not")
    assert listed["@rkb//data"].startswith("NO_SHAPES  its shapes depend on data")
    query = imported.run("query", "@rkb//...")
    assert query.out.split() == [
        "@rkb//kernelbench/level_1/task_1:task_1",
        "@rkb//norm:norm",
        "@rkb//norm_backward:norm_backward",
        "@rkb//numbers:numbers",
        "@rkb//residual:residual",
        "@rkb//statistics:statistics",
    ]


def test_the_lock_has_arguments_by_name_weights_and_the_settings_as_configs(
    imported: CliWorkspace,
) -> None:
    lock = (imported.root / "imports/rkb.lock.toml").read_text()

    for line in (
        'call = "y = forward(x, weight, bias, eps)"',
        'inputs = { x = "T[rows, width]" }',
        'state = { weight = "T[width]", bias = "T[width]" }',
        "scalars = { eps = 1e-05 }",
        "configs = [{ rows = 16, width = 128 }, { rows = 16, width = 64 },",
        " { rows = 32, width = 128 }, { rows = 32, width = 64 }]",
        "call = \"y = forward(scores, classes, 'mean')\"",
        'inputs = { scores = "T[rows, kinds]", classes = "i64[rows]" }',
        'call = "y = forward(x, mean, var, None)"',
        'updates = ["mean", "var"]',
        'call = "y = forward(x, mean, var, momentum)"',
        "gradients(((x,), grad_output, weight, eps, (width,),), (x, weight, bias, eps,), (0, 1, 2)",
    ):
        assert line in lock, line


@pytest.mark.parametrize(
    ("task", "text", "wrong"),
    [
        ("norm_backward", ANSWER, ("grad.sum(0)", "grad[0]")),
        ("norm_backward", BACKWARD, ("(weight.shape), weight", "(weight.shape), weight * weight")),
        ("norm", SCALED_NORM, (", weight, bias, eps)\n", ", None, bias, eps)\n")),
        (
            "statistics",
            STATISTICS,
            ("(x, mean, var, None, bias", "(x, mean.clone(), var, None, bias"),
        ),
    ],
)
def test_an_imported_function_is_judged_with_its_weights_and_buffers(
    imported: CliWorkspace, task: str, text: str, wrong: tuple[str, str]
) -> None:
    right = text
    if "backward" not in task:
        right = text.replace("def forward_fn(", "def forward(").replace("=forward_fn", "=forward")
    bad = right.replace(*wrong)
    assert bad != right

    for kernel, code, verdict in ((right, 0, "PASS"), (bad, 3, "FAIL")):
        imported.write("kernel.py", kernel)
        flags = ("--solution=kernel.py", "--gates=compile,correctness", "--json")
        ran = imported.run("test", f"@rkb//{task}", *flags)
        assert (ran.code, ran.gate("correctness")["verdict"]) == (code, verdict), ran.out


def test_settings_are_part_of_what_was_imported(imported: CliWorkspace, tmp_path: Path) -> None:
    copy = imported.copy(tmp_path)
    source = imported.root / "../bench"
    for path in source.rglob("*.*"):
        copy.write(f"../bench/{path.relative_to(source)}", path.read_text())
    assert copy.run("import", "--check", "@rkb").out == "imports/rkb.lock.toml: up to date\n"

    copy.write("../bench/tasks/norm/config_forward.json", _configs({"width": 256}))

    tested = copy.run("test", "@rkb//norm", "--agent=none")
    assert tested.code == 1
    assert "../bench/tasks/norm/config_forward.json changed since it was imported" in tested.err


CHECK = """
import torch
from robust_kbench.utils import easy_to_device, set_seed

class TestEvalResult(dict):
    pass

def check_forward_correctness(model, forward_fn, fn, get_inputs, inputs, init):
    set_seed(42)
    drawn = easy_to_device(get_inputs(**inputs))
    one = easy_to_device(model(**init))
    set_seed(42)
    drawn, other = easy_to_device(get_inputs(**inputs)), easy_to_device(model(**init))
    wrong = (one(*drawn, fn=forward_fn) - other(*drawn, fn=fn)).abs().max().item()
    return TestEvalResult(correct=wrong < 1e-3, max_diff=wrong)
"""
UTILITIES = """
import torch

def set_seed(seed):
    torch.manual_seed(seed)

def easy_to_device(value):
    return value
"""


def test_buffers_that_a_model_draws_are_the_originals(tmp_path: Path) -> None:
    """A call changes them, so that they are inputs; the model draws them after its inputs."""
    workspace = CliWorkspace.make(tmp_path)
    drawn = STATISTICS.replace("torch.zeros(width)", "torch.randn(width)")
    for path, text in (
        ("tasks/statistics/func_forward.py", drawn.replace("torch.ones(", "0.5 + torch.rand(")),
        ("tasks/statistics/config_forward.json", _configs({})),
        ("robust_kbench/sandbox/correct_forward_fn.py", CHECK),
        ("robust_kbench/utils.py", UTILITIES),
    ):
        workspace.write(f"../bench/{path}", text)
    workspace.run("import", "robust_kbench", "../bench", "--name=rkb")

    ran = workspace.run("import", "--prove", "@rkb")

    assert ran.code == 0, ran.out + ran.err
    assert "1 of 1 tasks mean what their originals do" in ran.out


def test_an_agent_works_on_an_imported_task(imported: CliWorkspace) -> None:
    assert "func_forward.py" in visited(imported, "@rkb//norm")
