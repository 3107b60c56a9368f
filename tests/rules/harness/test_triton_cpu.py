"""Triton kernels on the cpu platform mean what they mean on a GPU."""

# ruff: noqa: N803  (constants of a kernel are written in capitals)
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

import textwrap
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton_cpu import interpreter as triton_cpu
from triton_cpu.builder import UnsupportedOperationError
from triton_cpu.launch import LaunchError
from triton_cpu.rewrite import KernelSourceError

from tests.testkit.forks import Forks

triton_cpu.install()

TOOLS = str(Path(__file__).parents[3] / "rules" / "harness" / "tools")
KERNEL = """
import torch, triton, triton.language as tl

@triton.jit
def softmax(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=-float("inf"))
    tl.store(y + tl.program_id(0) * n + i, tl.softmax(v), mask=i < n)
"""
SCRIPT = """
import sys
sys.path[:0] = {paths!r}
assert "triton" not in sys.modules
{before}
from triton_cpu import interpreter
interpreter.install()
interpreter.install()
import kernel, torch
x = torch.randn(3, 5)
y = torch.empty_like(x)
kernel.softmax[(3,)](x, y, 5, BLOCK=8)
assert torch.allclose(y, x.softmax(1)), y
assert "TRITON_INTERPRET" in __import__("os").environ
"""


@pytest.fixture(scope="module")
def with_torch(tmp_path_factory):
    """Runs programs in processes that have imported PyTorch and not Triton."""
    home = tmp_path_factory.mktemp("home")
    with Forks("torch", env={"PATH": "/usr/bin:/bin", "HOME": str(home)}) as forks:
        yield forks


@pytest.mark.parametrize(
    "before",
    [
        "",
        "import torch, triton, triton.language",
        "import os; os.environ['TRITON_INTERPRET'] = '1'; import triton.language",
    ],
    ids=["cold", "warm", "interpreting"],
)
def test_install_works_in_any_process(before, tmp_path, with_torch):
    """Whether Triton was imported before or not; PyTorch was, as it is by what installs."""
    (tmp_path / "kernel.py").write_text(KERNEL)

    done = with_torch.run(SCRIPT.format(paths=[TOOLS, str(tmp_path)], before=before))

    assert done.returncode == 0, done.stderr


@triton.jit
def both(x, o, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    keep = (i > 2 and v > 0) or i == 0
    rest = not keep
    tl.store(o + i, tl.where(keep, 1, 0) + tl.where(rest, 10, 0))


def test_boolean_operators_are_elementwise():
    x = torch.tensor([-1.0, 1, 1, 1, -1, 1, -1, 1])
    o = torch.empty(8, dtype=torch.int32)
    both[(1,)](x, o, 8, BLOCK=8)
    assert o.tolist() == [1, 10, 10, 1, 10, 1, 10, 1]


@triton.jit
def branch_on_block(x, BLOCK: tl.constexpr):
    if tl.load(x + tl.arange(0, BLOCK)) > 0:
        tl.store(x, 1.0)


def test_a_block_cannot_decide_a_branch():
    with pytest.raises(TypeError, match=r"a block of shape \[8\] cannot decide a branch"):
        branch_on_block[(1,)](torch.ones(8), BLOCK=8)


@triton.jit
def chained(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, 1.0, mask=0 <= i < n)


def test_a_chained_comparison_is_refused_with_its_line():
    line = chained.fn.__code__.co_firstlineno + 3
    with pytest.raises(KernelSourceError, match=f"{__file__}:{line}: a chained comparison"):
        chained[(1,)](torch.ones(8), 8, BLOCK=8)


@triton.jit
def scaled(x, o, scale, flag, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i) * scale
    if flag:
        tl.store(o + i, v)


def test_a_float_argument_is_fp32_as_on_a_gpu():
    x = torch.tensor([1.0, 3.0, 1001.0, 0.1], dtype=torch.float16)
    o = torch.zeros(4)
    scaled[(1,)](x, o, 1.0001, True, BLOCK=4)
    assert torch.equal(o, x.float() * 1.0001)
    scaled[(1,)](x, o, 2.0, False, BLOCK=4)
    assert torch.equal(o, x.float() * 1.0001)


@triton.jit
def big(o, n):
    tl.store(o, n + n)


@pytest.mark.parametrize("n", [3, 2**31 + 5, 2**40])
def test_integer_arguments_are_as_wide_as_they_need(n):
    o = torch.zeros(1, dtype=torch.int64)
    big[(1,)](o, n)
    assert o.item() == 2 * n


@triton.jit
def second_largest(best, second, value, other):
    lower = tl.minimum(best, value)
    return tl.maximum(best, value), tl.maximum(lower, tl.maximum(second, other))


@triton.jit
def affine(scale, offset, next_scale, next_offset):
    return scale * next_scale, offset * next_scale + next_offset


@triton.jit
def combine(x, o, running, ROWS: tl.constexpr, COLS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLS + tl.arange(0, COLS)[None, :]
    v = tl.load(x + at)
    low = tl.full((ROWS, COLS), float("-inf"), tl.float32)
    _, second = tl.reduce((v, low), 1, second_largest)
    tl.store(o + tl.arange(0, ROWS), second)
    _, offset = tl.associative_scan((v, v), 1, affine)
    tl.store(running + at, offset)


def test_own_combine_functions():
    """Neither reduction is commutative in its pairs; both keep the order of the elements."""
    x = torch.rand(4, 16, generator=torch.Generator().manual_seed(2))
    o, running = torch.empty(4), torch.empty(4, 16)
    combine[(1,)](x, o, running, ROWS=4, COLS=16)
    assert torch.equal(o, x.sort(dim=1, descending=True).values[:, 1])
    expected = [x[:, 0]]
    for column in range(1, 16):
        expected.append(expected[-1] * x[:, column] + x[:, column])
    assert torch.allclose(running, torch.stack(expected, 1), rtol=1e-5)


@triton.jit
def library(x, ordered, top, flipped, folded, at, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(ordered + i, tl.sort(v))
    tl.store(top + tl.arange(0, 4), tl.topk(v, 4))
    tl.store(flipped + i, tl.flip(v, 0))
    tl.store(folded, tl.xor_sum(i, axis=0))
    tl.store(folded + 1, tl.reduce_or(i, 0))
    tl.store(at, tl.argmin(v, axis=0))
    tl.store(at + 1, tl.argmax(v, axis=0, tie_break_left=False))


def test_triton_standard_library():
    x = torch.randperm(32, generator=torch.Generator().manual_seed(1)).float()
    ordered, top, flipped = torch.empty(32), torch.empty(4), torch.empty(32)
    folded, at = torch.empty(2, dtype=torch.int32), torch.empty(2, dtype=torch.int32)
    library[(1,)](x, ordered, top, flipped, folded, at, BLOCK=32)
    assert torch.equal(ordered, x.sort().values)
    assert top.tolist() == [31, 30, 29, 28]
    assert torch.equal(flipped, x.flip(0))
    assert folded.tolist() == [0, 31]
    assert at.tolist() == [x.argmin().item(), x.argmax().item()]


@triton.jit
def special(x, o, n: tl.constexpr):
    i = tl.arange(0, n)
    v = tl.load(x + i)
    tl.store(o + i, tl.erf(v))
    tl.store(o + n + i, libdevice.tanh(v))
    tl.store(o + 2 * n + i, tl.rsqrt(tl.abs(v)))


def test_special_functions():
    x = torch.linspace(-3, 3, 64)
    o = torch.empty(3, 64)
    special[(1,)](x, o, n=64)
    assert torch.allclose(o, torch.stack([x.erf(), x.tanh(), x.abs().rsqrt()]), rtol=1e-6)


@triton.jit
def halves(x, o, n: tl.constexpr):
    i = tl.arange(0, n)
    tl.store(o + i, libdevice.round(tl.load(x + i)))


def test_libdevice_rounds_halves_away_from_zero():
    x = torch.tensor([0.5, 1.5, 2.5, -0.5, -2.5, 0.49999997, -0.3, 8388609.0])
    o = torch.empty(8)
    halves[(1,)](x, o, n=8)
    assert o.tolist() == [1, 2, 3, -1, -3, 0, 0, 8388609]


@triton.jit
def truths(flags, x, above, n, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    m = i < n
    flag = tl.load(flags + i, mask=m, other=False)
    v = tl.load(x + i, mask=m)
    tl.store(x + i, tl.where(flag, -v, v), mask=m)
    tl.store(above + i, v > 0.5, mask=m)
    if tl.load(flags):
        tl.store(x, 7.0)


def test_pointers_to_bool_are_read_and_written():
    flags = torch.tensor([True, False, True, False, True])
    x, above = (
        torch.tensor([0.1, 0.6, 0.7, 0.2, 0.9]),
        torch.tensor([True, True, False, True, False]),
    )
    truths[(1,)](flags, x, above, 4, SIZE=8)
    assert torch.allclose(x, torch.tensor([7.0, 0.6, -0.7, 0.2, 0.9]))
    assert above.tolist() == [False, True, True, False, False]


@triton.jit
def eight_bits(x):
    tl.store(x, tl.load(x).to(tl.float8e4b15).to(tl.float32))


@triton.jit
def assembly(x):
    v = tl.load(x)
    tl.store(x, tl.inline_asm_elementwise("mov $0, $1;", "=r,r", [v], tl.float32, True, 1))


@triton.jit
def unknown_function(x):
    tl.store(x, libdevice.y0(tl.load(x)))


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (eight_bits, "fp8e4b15"),
        (assembly, "inline_asm_elementwise"),
        (unknown_function, "libdevice.y0"),
    ],
)
def test_what_cannot_be_right_is_refused_by_name(kernel, name):
    with pytest.raises(UnsupportedOperationError, match=name):
        kernel[(1,)](torch.ones(1))


@triton.autotune(
    configs=[triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 128})], key=["n"]
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def tuned(x, o, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(o + i, tl.load(x + i, mask=m) + EVEN, mask=m)


def test_autotune_is_deterministic_and_heuristics_work():
    for n in (128, 100):
        x, o = torch.randn(n), torch.empty(n)
        tuned[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, o, n)
        assert torch.equal(o, x + (n % 64 == 0))
        assert tuned.best_config.kwargs == {"BLOCK": 64}


def test_do_bench_measures():
    x, o = torch.randn(8), torch.empty(8)
    took = triton.testing.do_bench(
        lambda: tuned[lambda meta: (1,)](x, o, 8), warmup=1, rep=1, return_mode="min"
    )
    assert took > 0


@triton.jit
def printing(x, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK >= 4, "BLOCK is too small")
    tl.static_print("block", BLOCK)
    tl.device_print("n", n)


def test_static_assertions_and_prints(capfd):
    printing[(1,)](torch.ones(1), 7, BLOCK=4)
    assert capfd.readouterr().out == "block 4\n(0, 0, 0)  n:  [7]\n"
    with pytest.raises(AssertionError, match="BLOCK is too small"):
        printing[(1,)](torch.ones(1), 7, BLOCK=2)


def test_kernels_may_close_over_constants():
    factor = tl.constexpr(3)

    @triton.jit
    def times(x):
        tl.store(x, tl.load(x) * factor)

    x = torch.ones(1)
    times[(1,)](x)
    assert x.item() == 3


def test_a_kernel_does_not_see_names_of_the_interpreter():
    scope: dict[str, object] = {"triton": triton, "tl": tl, "__name__": "lost"}
    source = textwrap.dedent("def k(x): tl.store(x, np.float32(1))")
    exec(source, scope)
    with pytest.raises(KernelSourceError, match="a kernel must be in"):
        triton.jit(scope["k"])[(1,)](torch.ones(1))


@pytest.mark.parametrize(
    ("grid", "options", "message"),
    [
        ((1,), {"BLOCK": 8, "warps": 4}, "no parameter or launch option 'warps'"),
        ((1,), {"BLOCK": 8, "num_warps": 3}, "num_warps must be a power of two, not 3"),
        ((1,), {}, "missing a required argument: 'BLOCK'"),
        ((1, 70000), {"BLOCK": 8}, "outside the limits"),
        ((-1,), {"BLOCK": 8}, "outside the limits"),
        ((1, 1, 1, 1), {"BLOCK": 8}, "one to three dimensions"),
        (("many",), {"BLOCK": 8}, "integers"),
    ],
)
def test_a_wrong_launch_is_refused(grid, options, message):
    with pytest.raises(LaunchError, match=message):
        branch_on_block[grid](torch.ones(8), **options)


def test_an_empty_grid_runs_nothing():
    branch_on_block[(0,)](torch.ones(8), BLOCK=8)


@triton.jit
def wait_for_predecessor(flags, order):
    p = tl.program_id(0) + tl.program_id(1) * tl.num_programs(0)
    while p > 0 and tl.atomic_add(flags + p - 1, 0) == 0:
        pass
    tl.store(order + p, tl.atomic_add(flags + p, 1))


def test_programs_run_in_the_order_of_their_linear_index():
    """A kernel that waits for lower programs, as a decoupled look-back does, terminates."""
    flags = torch.zeros(12, dtype=torch.int32)
    wait_for_predecessor[(4, 3)](flags, torch.empty(12, dtype=torch.int32))
    assert flags.tolist() == [1] * 12
