"""``kabuild import gpu_mode`` on a checkout of our own writing, in the forms of its problems."""

from __future__ import annotations

import pytest

from tests.testkit.cli import CliWorkspace

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
    return x @ weights["proj.weight"] * config["scale"]

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
TASKS = {
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
        lines = [
            *("multi_gpu: true\n" if name == "one/ranks" else "", "files:\n"),
            '  - {"name": "utils.py", "source": "../utils.py"}\n',
            '  - {"name": "task.py", "source": "task.py"}\n',
            '  - {"name": "submission.py", "source": "@SUBMISSION@"}\n',
            *("tests:\n", *(f"  - {test}\n" for test in tests)),
        ]
        workspace.write(f"{home}/task.yml", "".join(lines))
    ran = workspace.run("import", "gpu_mode", "../bench", "--name=gm")
    assert ran.code == 0, ran.err
    assert "@gm: 3 of 6 tasks imported" in ran.out, ran.out + ran.err
    assert "bundles may not include its files" in ran.out
    return workspace


def test_every_task_is_imported_or_left_out_for_a_reason(imported: CliWorkspace) -> None:
    listed = dict(
        line.split("  ", 1) for line in imported.run("import", "--list", "@gm").out.splitlines()
    )

    assert listed["@gm//one/properties"].startswith("NO_UNIQUE_RESULT  its check is of properties")
    assert listed["@gm//one/ranks"].startswith("NEEDS_SEVERAL_GPUS  it computes on several GPUs")
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
