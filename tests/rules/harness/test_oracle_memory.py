"""What verifying a call takes of a device's memory, counted without data and then with them."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from judging_doubles import REFERENCE, SPEC
from torch.profiler import ProfilerActivity, profile

from tests.testkit.own_tasks import ROOT

from base.program import Argument, Config, MachineFault, Signature  # isort: skip
from base.spec import parse_spec  # isort: skip
from perf import light_imports, oracle_memory  # isort: skip
from perf.device_budget import GIB, Budget  # isort: skip
from perf.device_plan import Need  # isort: skip
from perf.oracle_memory import UNCOUNTED_COPIES, Verification  # isort: skip
from terms.tolerance import bounds  # isort: skip
from truth import comparison, precision  # isort: skip
from truth.assessment import Assessor, Call  # isort: skip
from truth.oracle import Oracle  # isort: skip

LOGITS = Signature(
    (Argument("logits", "T", ("rows", "vocab")), Argument("target", "i64", ("rows",))),
    (Argument("loss", "f32", ("rows",)),),
    (("ignore_index", -100),),
    ("rows", "vocab"),
)
LARGEST = Config("large", {"rows": 4096, "vocab": 128256}, "bf16", {"ignore_index": -100})
SMALL = Config("small", {"rows": 64, "vocab": 4096}, "bf16", {"ignore_index": -100})
CROSS_ENTROPY = ROOT / "tasks/triton2triton/cross_entropy/reference.py"


def judge_of(path, signature):
    oracle = Oracle(str(path), signature)
    names = tuple(argument.name for argument in signature.results)
    assessor = Assessor(oracle, signature, bounds({}), comparison.read({}, names))
    return SimpleNamespace(oracle=oracle, assessor=assessor)


def softmax(tmp_path, text=REFERENCE):
    (tmp_path / "reference.py").write_text(text)
    return judge_of(tmp_path / "reference.py", parse_spec(SPEC).signature)


def taken(work):
    """The most bytes that the CPU's allocator has given out at a time, by its own events."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        work()
    held = most = 0
    for event in recorded.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            most = max(most, held)
    return most


def verified(judge, config, seed=1):
    """What verifying calls does, with data."""
    inputs = judge.oracle.inputs(config, torch.Generator().manual_seed(seed))

    def work():
        call = Call(config, "default", inputs, judge.oracle.expected(config, inputs))
        results = {name: tensor.float() for name, tensor in call.expected.items()}
        count = judge.assessor.together(results)
        judge.assessor.measured([call] * count, [results] * count)
        judge.assessor.overs(call, results)

    return work


def test_the_largest_config_of_cross_entropy_fits_where_20_gib_are_free():
    judge = judge_of(CROSS_ENTROPY, LOGITS)
    found = Verification.of(judge, LOGITS, LARGEST)

    elements = 4096 * 128256
    assert found.counted
    assert 2 * 8 * elements <= found.bytes < 3.2 * 8 * elements  # doubles, and their exponentials
    Budget.of(140 * GIB, 20 * GIB, 0.25).demand(
        LARGEST.name, Need.of(LOGITS, LARGEST, found).bytes(1)
    )


def test_what_does_not_fit_is_refused_with_its_figures():
    judge = judge_of(CROSS_ENTROPY, LOGITS)
    need = Need.of(LOGITS, LARGEST, Verification.of(judge, LOGITS, LARGEST))

    with pytest.raises(
        MachineFault, match=r"DEVICE_MEMORY: large needs 1\d\.\d\d GiB .* 9\.00 GiB"
    ):
        Budget.of(140 * GIB, 9 * GIB, 0.25).demand(LARGEST.name, need.least)


def test_the_count_holds_what_the_allocator_gives_out():
    judge = judge_of(CROSS_ENTROPY, LOGITS)
    counted = Verification.of(judge, LOGITS, SMALL).bytes
    most = taken(verified(judge, SMALL))

    assert 2 * 8 * 64 * 4096 < most <= counted < 10 * 8 * 64 * 4096


def test_outputs_are_compared_within_the_count(tmp_path):
    judge, signature = softmax(tmp_path), parse_spec(SPEC).signature
    config = Config("c", {"rows": 256, "cols": 1024}, "f32", {"scale": 1.0})
    counted = Verification.of(judge, signature, config)
    most = taken(verified(judge, config))

    assert counted.counted
    assert 4 * 8 * 256 * 1024 < most <= counted.bytes


def test_what_rounding_moves_is_found_within_the_count(tmp_path, monkeypatch):
    """Taken a slice at a time, and without the results of earlier runs."""
    judge, signature = softmax(tmp_path), parse_spec(SPEC).signature
    config = Config("c", {"rows": 256, "cols": 1024}, "f32", {"scale": 1.0})
    counted = Verification.of(judge, signature, config)
    inputs = judge.oracle.inputs(config, torch.Generator().manual_seed(1))
    expected = judge.oracle.expected(config, inputs)
    monkeypatch.setattr(precision, "SLICE", 1 << 12)
    most = taken(lambda: judge.oracle.sensitivity(config, inputs, expected))

    doubles = 8 * 256 * 1024
    assert counted.counted
    assert 3 * doubles < most < 4.2 * doubles < counted.bytes


@pytest.mark.parametrize(("transposed", "columns"), [(False, 30 * 30), (True, 32 * 32)])
def test_the_columns_of_a_convolution_count(transposed, columns):
    """A device multiplies matrices, of one sample at a time."""
    layer = torch.conv_transpose2d if transposed else torch.conv2d
    ledger = oracle_memory._Ledger()
    with torch.device("meta"), ledger:
        given, weight = torch.zeros(2, 8, 32, 32).double(), torch.zeros(8, 4, 3, 3).double()
        held = ledger.held
        made = layer(given, weight if transposed else weight.repeat(1, 2, 1, 1))
        each = 4 if transposed else 8
        assert ledger.peak >= held + 8 * (made.numel() + given.numel() + each * 9 * columns)


@pytest.mark.parametrize(
    ("layer", "weight"),
    [
        ("conv2d(x, w, groups=4)", (256, 4, 1, 1)),
        ("conv_transpose2d(x, w, groups=4)", (16, 8, 3, 3)),
    ],
)
def test_the_results_of_a_convolutions_groups_are_counted_twice(tmp_path, layer, weight):
    """They are copied beside each other, here as on a device without a library for that."""
    channels, sides = (256, 64) if weight[2] == 1 else (32, 66)
    given = Argument("x", "T", ("b", "16", "64", "64")), Argument("w", "T", tuple(map(str, weight)))
    made = Argument("y", "T", ("b", str(channels), str(sides), str(sides)))
    signature = Signature(given, (made,), (), ("b",))
    (tmp_path / "reference.py").write_text(
        f"""import torch

def inputs(config, generator):
    x = torch.randn(config["b"], 16, 64, 64, generator=generator)
    return {{"x": x, "w": torch.randn(*{weight}, generator=generator)}}

def reference(x, w, **_):
    return {{"y": torch.nn.functional.{layer}}}
"""
    )
    judge = judge_of(tmp_path / "reference.py", signature)
    config = Config("c", {"b": 4}, "f32", {})
    inputs = judge.oracle.inputs(config, torch.Generator().manual_seed(1))
    most = taken(lambda: judge.oracle.expected(config, inputs))

    outputs = 8 * 4 * channels * sides * sides
    assert 2 * outputs <= most <= Verification.of(judge, signature, config).least


def test_a_judge_leaves_convolutions_to_no_library(tmp_path):
    """In a process of its own, as it holds for good, and even where the flags are frozen."""
    code = "torch.backends.disable_global_flags(); multiply_matrices(); multiply_matrices()"
    told = "print(torch.backends.cudnn.enabled)"
    text = f"import torch; from truth.precision import multiply_matrices; {code}; {told}"
    tools = {"PYTHONPATH": str(ROOT / "rules/harness/tools"), "PATH": os.environ["PATH"]}
    said = subprocess.check_output([sys.executable, "-c", text], text=True, env=tools)

    assert said == "False\n"


def test_an_oracle_may_hold_far_more_than_its_largest_tensor(tmp_path):
    """Scores of attention, which are no tensor of the signature."""
    pairs = "(x[:, None, :] * x[:, :, None]).softmax(-1).sum(-1)"
    judge = softmax(tmp_path, REFERENCE.replace("torch.softmax(x * scale, dim=-1)", pairs))
    config = Config("c", {"rows": 512, "cols": 4096}, "f32", {"scale": 1.0})
    found = Verification.of(judge, parse_spec(SPEC).signature, config)

    assert found.counted
    assert found.bytes > 2 * 8 * 512 * 4096 * 4096  # 128 GiB


def test_an_oracle_that_is_very_long_is_held_for_greedy(tmp_path):
    asks = "sum((x for _ in range(9000)), start=x)"
    judge = softmax(tmp_path, REFERENCE.replace("torch.softmax(x * scale, dim=-1)", asks))
    config = Config("c", {"rows": 8, "cols": 64}, "f32", {"scale": 1.0})
    found = Verification.of(judge, parse_spec(SPEC).signature, config)

    uncounted = UNCOUNTED_COPIES * 8 * 8 * 64
    assert found == Verification(uncounted, uncounted, counted=False)


NEEDS_VALUES = "x.repeat_interleave(int(x.abs().max() * 0) + 16, dim=0).view(16, *x.shape)"


def test_an_oracle_that_needs_values_is_run_with_them(tmp_path):
    """Its temporaries have 16 times the elements of its largest tensor."""
    text = REFERENCE.replace("torch.softmax(x * scale, dim=-1)", f"({NEEDS_VALUES} * 2).mean(0)")
    judge = softmax(tmp_path, text)
    config = Config("c", {"rows": 64, "cols": 512}, "f32", {"scale": 1.0})
    found = Verification.of(judge, parse_spec(SPEC).signature, config)
    most = taken(verified(judge, config))

    assert found.counted
    assert 2 * 16 * 8 * 64 * 512 < most <= found.bytes < 2.5 * most


def test_no_memory_for_the_values_is_a_fault_of_the_machine(tmp_path):
    raising = "_full(float(x.max()))"
    text = REFERENCE.replace("torch.softmax(x * scale, dim=-1)", raising)
    text += "\n\ndef _full(_):\n    raise torch.OutOfMemoryError('no 9 GiB of 4')\n"
    judge = softmax(tmp_path, text)
    config = Config("c", {"rows": 8, "cols": 64}, "f32", {"scale": 1.0})

    with pytest.raises(MachineFault, match=r"DEVICE_MEMORY: c does not fit: no 9 GiB of 4"):
        Verification.of(judge, parse_spec(SPEC).signature, config)


def test_an_oracle_may_compute_elsewhere_than_the_judge(tmp_path):
    """On the CPU, with NumPy for instance, where the judge computes on a device."""
    text = REFERENCE.replace("torch.softmax(x * scale, dim=-1)", "torch.zeros(8, 64, device='cpu')")
    judge = softmax(tmp_path, text)
    config = Config("c", {"rows": 8, "cols": 64}, "f32", {"scale": 1.0})
    x = torch.ones(8, 64)
    with torch.device("meta"):  # takes the place of a GPU
        assert judge.oracle.expected(config, {"x": x})["y"].is_meta
    assert not judge.oracle.expected(config, {"x": x})["y"].is_meta


def test_an_oracle_may_change_what_it_is_given(tmp_path):
    """It gets its own doubles, and inputs of any dtype stay as they were."""
    judge = softmax(tmp_path, REFERENCE.replace("torch.softmax(x * scale, dim=-1)", "x.mul_(2)"))
    config = Config("c", {"rows": 8, "cols": 64}, "f32", {"scale": 1.0})
    for dtype in (torch.float32, torch.float64):
        x = torch.ones(8, 64, dtype=dtype)
        assert judge.oracle.expected(config, {"x": x})["y"].unique().tolist() == [2.0]
        assert judge.oracle.compute(config, {"x": x})["y"].unique().tolist() == [2.0]
        judge.oracle.sensitivity(config, {"x": x}, {"y": x.double()})
        assert x.unique().tolist() == [1.0]


COMPILERS_QUESTIONS = "torch.fx.experimental.symbolic_shapes"
OF_UNKNOWN_SIZES = {"_constrain_range_for_size", "constrain_range"}


def test_the_stand_ins_have_all_that_operators_without_data_import():
    """The names differ between versions of PyTorch; one that is missing imports SymPy."""
    home = Path(torch.__file__).parent
    files = [home / "_meta_registrations.py"]
    files += [
        file
        for part in ("_refs", "_prims", "_prims_common", "_decomp")
        for file in (home / part).rglob("*.py")
    ]
    imported = {
        alias.name
        for file in files
        for node in ast.walk(ast.parse(file.read_bytes()))
        if isinstance(node, ast.ImportFrom) and node.module == COMPILERS_QUESTIONS
        for alias in node.names
    }
    stands_in = {*light_imports._CONTENTS[COMPILERS_QUESTIONS]}

    assert len(imported) > 5
    assert imported - OF_UNKNOWN_SIZES <= stands_in


WITHOUT_COMPILER = """
import sys
import torch
from perf.oracle_memory import _counted, _Ledger

ledger = _Ledger()
with _counted(ledger, "meta"):
    x = torch.softmax(torch.zeros(64, 64).double(), -1)
    torch.logsumexp(x.log().float(), -1).sum()
    {more}
assert ledger.peak >= 2 * 64 * 64 * 8, ledger.peak
assert "torch._dynamo" not in sys.modules and "_dynamo" not in vars(torch)
assert ("sympy" in sys.modules) is {imported}
"""


@pytest.mark.parametrize(
    ("more", "imported"),
    [
        ("pass", False),
        ("import sympy; assert sympy.Integer(2) + 1 == 3", True),
        ("from sympy import Integer; assert Integer(2) + 1 == 3", True),
        ("import sympy.core; assert sympy.core.Integer(2) + 1 == 3", True),
    ],
)
def test_counting_imports_neither_compiler_nor_algebra(more, imported):
    """They take six seconds, and nothing is compiled where memory is counted."""
    path = {"PYTHONPATH": str(ROOT / "rules/harness/tools"), "PATH": os.environ["PATH"]}
    code = WITHOUT_COMPILER.format(more=more, imported=imported)
    subprocess.run([sys.executable, "-c", code], env=path, check=True, timeout=300)
