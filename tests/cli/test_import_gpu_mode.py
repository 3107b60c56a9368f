"""``kabuild import gpu_mode`` on a checkout of our own writing, in the forms of its problems."""

from __future__ import annotations

import pytest

from tests.testkit.cli import CliWorkspace
from tests.testkit.visitors import visited

UTILS = "def match(reference):\n    return lambda data, output: output.equal(reference(data))\n"
HEAD = "import torch\nfrom task import Data\nfrom utils import match\n"
ADD = (
    HEAD
    + """
def ref_kernel(data):
    a, b, output = data
    output[...] = a + b
    return output

def generate_input(size: int, seed: int) -> Data:
    gen = torch.Generator(device="cuda")
    gen.manual_seed(seed)
    a = torch.randn(size, 2 * size, device="cuda", dtype=torch.float16, generator=gen)
    return a, torch.randn_like(a), torch.empty_like(a)

check_implementation = match(ref_kernel)
"""
)
MIXED = (
    HEAD
    + """
def ref_kernel(data):
    x, weights, config = data
    return (x @ weights["proj.weight"] * config["scale"]).T

def generate_input(rows: int, width: int, seed: int) -> Data:
    torch.manual_seed(seed)
    spread = torch.rand(1, device="cuda").item() + 1.0
    weights = {"proj.weight": torch.randn(width, 24, device="cuda") * spread}
    return torch.randn(rows, width, device="cuda"), weights, {"scale": 2.5}

def check_implementation(data, output):
    return match(ref_kernel)(data, output)
"""
)
PROPERTIES = ADD.replace(
    "check_implementation = match(ref_kernel)",
    "def check_implementation(data, output):\n    return output.isfinite().all()",
)
EIGEN = (
    HEAD
    + """
def ref_kernel(data):
    values, vectors = torch.linalg.eigh(data)
    return vectors, values

def generate_input(batch: int, n: int, seed: int) -> Data:
    torch.manual_seed(seed)
    data = torch.randn(batch, n, n, device="cuda")
    return data + data.mT

def check_implementation(data, output):
    vectors, values = output
    if not values.diff().ge(0).all():
        return False, "eigenvalues are not sorted"
    left, right = data.double() @ vectors.double(), vectors.double() * values[..., None, :]
    unit = vectors.double().norm(dim=-2)
    small = 1e-4 * data.double().abs().amax() * data.shape[-1]
    return bool((left - right).abs().amax() <= small and (unit - 1).abs().amax() < 1e-4), "not so"
"""
)
UNREAD = (
    ADD.replace("output[...] = a + b\n    return output", "return a + b")
    .replace("torch.empty_like(a)", "torch.empty_like(a).unsqueeze(0)")
    .replace(
        "check_implementation = match(ref_kernel)",
        "def check_implementation(data, output):\n"
        '    return "" if output.equal(ref_kernel(data)) else "it differs"',
    )
)
ROUTED = (
    HEAD
    + """
def ref_kernel(data):
    x, weight = data
    scores, places = torch.topk(x @ weight, 2)
    return scores * (1 + places % 5).to(scores.dtype)

def generate_input(rows: int, width: int, kinds: int, seed: int) -> Data:
    gen = torch.Generator(device="cuda")
    gen.manual_seed(seed)
    x = torch.randn(rows, width, device="cuda", dtype=torch.float16, generator=gen)
    return x, torch.randn(width, kinds, device="cuda", dtype=torch.float16, generator=gen)

check_implementation = match(ref_kernel)
"""
)
PARTS = """
import torch

DEVICE = "cuda"

def reference_forward(x, classes):
    return torch.logsumexp(x, 1) - x.gather(1, classes[:, None])[:, 0]

def reference_backward(x, classes, given):
    found = torch.softmax(x, 1)
    found[torch.arange(len(x), device=x.device), classes] -= 1.0
    return found * given[:, None]

def generate_inputs(batch_size, kinds, seed=42):
    torch.manual_seed(seed)
    x = torch.randn(batch_size, kinds, device=DEVICE)
    classes = torch.randint(0, kinds, (batch_size,), device=DEVICE)
    return x, classes, torch.randn(batch_size, device=DEVICE)
"""
EVALUATION = """
from reference import generate_inputs

ROWS = 1_024

def check(solution, kinds):
    x, classes, given = generate_inputs(ROWS, kinds)
    return solution.loss_forward(x, classes).isfinite().all()
"""
MEMORY = ADD.replace("output[...] = a + b\n    return output", "return a + b")
WIDE = (
    HEAD
    + """
def ref_kernel(data):
    x, output = data
    return torch.cumsum(x.double(), 0)

def generate_input(size: int, seed: int) -> Data:
    torch.manual_seed(seed)
    x = torch.randn(size, device="cuda")
    return x, torch.empty_like(x)

def check_implementation(data, output):
    return bool((output - ref_kernel(data)).abs().amax() < 1e-3)
"""
)
WRITING = """
import torch

def custom_kernel(data):
    *values, output = data
    output[...] = DONE
    return output

custom_kernel = torch.compile(custom_kernel, mode="reduce-overhead")
"""
TASKS = {
    "one/memory": (MEMORY, ('{"size": 12, "seed": 1}', '{"size": 40, "seed": 2}')),
    "one/wide": (WIDE, ('{"size": 300, "seed": 1}',)),
    "one/unread": (UNREAD, ('{"size": 12, "seed": 1}',)),
    "one/routed": (ROUTED, ('{"rows": 128, "width": 64, "kinds": 16, "seed": 1}',)),
    "one/loss_py": (PARTS, ('{"kinds": 40}',)),
    "one/eigen": (EIGEN, ('{"batch": 4, "n": 16, "seed": 5}',)),
    "one/add": (ADD, ('{"size": 12, "seed": 1}', '{"size": 40, "seed": 2}')),
    "one/mixed": (MIXED, ('{"rows": 24, "width": 16, "seed": 3}',)),
    "one/properties": (PROPERTIES, ('{"size": 12, "seed": 1}',)),
    "one/ranks": (ADD, ('{"size": 12, "seed": 1}',)),
    "one/nothing": (HEAD, ('{"size": 12, "seed": 1}',)),
}


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> CliWorkspace:
    """A workspace beside a checkout, whose tasks were imported."""
    workspace = CliWorkspace.make(tmp_path_factory.mktemp("import"))
    workspace.write("../bench/problems/one/utils.py", UTILS)
    workspace.write("../bench/problems/pmpp_v2/utils.py", UTILS)
    for name, (text, tests) in TASKS.items():
        home = f"../bench/problems/{name}"
        workspace.write(f"{home}/reference.py", text)
        workspace.write(f"{home}/task.py", "Data = tuple\n")
        own = '  - {"name": "eval.py", "source": "eval.py"}\n' if text is PARTS else ""
        workspace.write(f"{home}/eval.py", EVALUATION)
        lines = [
            *("multi_gpu: true\n" if name == "one/ranks" else "", "files:\n"),
            '  - {"name": "utils.py", "source": "../utils.py"}\n',
            '  - {"name": "task.py", "source": "task.py"}\n',
            '  - {"name": "submission.py", "source": "@SUBMISSION@"}\n',
            own,
            *("tests:\n", *(f"  - {test}\n" for test in tests)),
        ]
        workspace.write(f"{home}/task.yml", "".join(lines))
    ran = workspace.run("import", "gpu_mode", "../bench", "--name=gm")
    assert ran.code == 0, ran.err
    assert "@gm: 7 of 11 tasks imported" in ran.out, ran.out + ran.err
    assert "bundles may not include its files" in ran.out
    return workspace


def test_every_task_is_imported_or_left_out_for_a_reason(imported: CliWorkspace) -> None:
    listed = dict(
        line.split("  ", 1) for line in imported.run("import", "--list", "@gm").out.splitlines()
    )

    assert listed["@gm//one/properties"].startswith("NO_UNIQUE_RESULT  its check is of properties")
    assert listed["@gm//one/ranks"].startswith("NEEDS_SEVERAL_GPUS  it computes on several GPUs")
    assert listed["@gm//one/routed"].startswith("ILL_CONDITIONED  rounding to half precision dec")
    assert listed["@gm//one/nothing"].startswith("NO_ENTRY  it has no generate_input and ref_kern")


def test_the_lock_tells_memory_to_write_to_from_inputs(imported: CliWorkspace) -> None:
    lock = (imported.root / "imports/gm.lock.toml").read_text()

    for line in (
        'call = "_ = custom_kernel((data_0, data_1, data_2))"',
        'inputs = { data_0 = "f16[size, 2 * size]", data_1 = "f16[size, 2 * size]" }',
        'outputs = { data_2 = "f16[size, 2 * size]" }',
        "configs = [{ size = 40 }, { size = 12 }]",
        "(data_0, {'proj.weight': data_1_proj_weight}, {'scale': data_2_scale}))",
        'inputs = { data_0 = "T[rows, width]", data_1_proj_weight = "T[width, 24]" }',
        'call = "data_2 = custom_kernel((data_0, data_1, data_2))"',
        'call = "data_1 = narrowed((data_0, data_1), f32)"',
        'outputs = { data_1 = "f32[size]" }',
        'layout = { y = "any" }',
        "several('loss', {'forward': (x, classes,), 'backward': (x, classes, given,)})",
        "configs = [{ batch_size = 1024, kinds = 40 }]",
    ):
        assert line in lock, line


def test_a_check_of_properties_decides_where_several_results_are_right(
    imported: CliWorkspace,
) -> None:
    turned = EIGEN.replace("ref_kernel", "custom_kernel").replace("return vec", "return -vec")
    wrong = turned.replace("return -vectors, values", "return -vectors, values * 1.01")
    rows = turned.replace("return -vectors", "return -vectors.mT")

    for kernel, code, reason in (
        (turned, 0, ""),
        (wrong, 3, "WRONG_RESULT"),
        (rows, 3, "WRONG_RESULT"),
    ):
        imported.write("kernel.py", kernel)
        flags = ("--solution=kernel.py", "--gates=compile,correctness", "--json")
        ran = imported.run("test", "@gm//one/eigen", *flags)
        assert (ran.code, ran.gate("correctness")["reason"]) == (code, reason), ran.out


@pytest.mark.parametrize(("task", "text"), [("add", ADD), ("mixed", MIXED)])
def test_an_imported_kernel_is_judged(imported: CliWorkspace, task: str, text: str) -> None:
    right = text.replace("ref_kernel", "custom_kernel")
    wrong = right.replace("a + b", "a - b").replace('config["scale"]', "2")

    for kernel, code, verdict in ((right, 0, "PASS"), (wrong, 3, "FAIL")):
        imported.write("kernel.py", kernel)
        flags = ("--solution=kernel.py", "--gates=compile,correctness", "--json")
        ran = imported.run("test", f"@gm//one/{task}", *flags)
        assert (ran.code, ran.gate("correctness")["verdict"]) == (code, verdict), ran.out


ADDED, SUMMED = "values[0] + values[1]", "torch.cumsum(values[0], 0)"


@pytest.mark.parametrize(
    ("task", "kernel", "reason"),
    [
        ("memory", MEMORY.replace("ref_kernel", "custom_kernel"), ""),
        ("memory", WRITING.replace("DONE", ADDED), ""),
        ("memory", WRITING.replace("output[...] = DONE", "pass"), "INCOMPLETE_OUTPUT"),
        ("wide", WRITING.replace("DONE", SUMMED), ""),
        ("wide", WRITING.replace("DONE", f"1.1 * {SUMMED}"), "WRONG_RESULT"),
    ],
)
def test_a_solution_may_return_the_memory_that_it_is_given(
    imported: CliWorkspace, task: str, kernel: str, reason: str
) -> None:
    """The reference returns memory of its own. On ``cpu``, nothing is compiled."""
    imported.write("kernel.py", kernel)
    flags = ("--solution=kernel.py", "--gates=compile,correctness", "--json")
    ran = imported.run("test", f"@gm//one/{task}", *flags)
    assert (ran.code, ran.gate("correctness")["reason"]) == (3 if reason else 0, reason), ran.out


def test_all_functions_of_a_solution_are_judged(imported: CliWorkspace) -> None:
    right = PARTS.replace("reference_", "loss_")
    wrong = right.replace("* given[:, None]", "* given.abs()[:, None]")
    partial = right.replace("loss_backward", "loss_back")

    for kernel, code, reason in (
        (right, 0, ""),
        (wrong, 3, "WRONG_RESULT"),
        (partial, 3, "EXCEPTION"),
    ):
        imported.write("kernel.py", kernel)
        flags = ("--solution=kernel.py", "--gates=compile,correctness", "--json")
        ran = imported.run("test", "@gm//one/loss_py", *flags)
        assert (ran.code, ran.gate("correctness")["reason"]) == (code, reason), ran.out


def test_memory_that_nothing_is_written_to_is_the_same_in_equal_draws(
    imported: CliWorkspace,
) -> None:
    """Its check returns what is wrong, and an empty text for a right result."""
    ran = imported.run("import", "--prove", "@gm//one/unread")

    assert ran.code == 0, ran.out + ran.err
    rows = {line[:22].strip(): line[22:].split() for line in ran.out.splitlines()}
    assert rows["the original"] == ["reduced", "1", "1", "0", "0", "0"], ran.out
    assert rows["zeros"] == ["reduced", "1", "0", "0", "0", "1"], ran.out
    assert "findings" not in ran.out


def test_an_agent_works_on_an_imported_task(imported: CliWorkspace) -> None:
    assert "BRIEF.md" in visited(imported, "@gm//one/add")
