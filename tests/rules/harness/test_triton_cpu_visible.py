"""A kernel on the cpu platform sees what Triton's compiler would let it see, and nothing else."""

# ruff: noqa: N803  (constants of a kernel are written in capitals)
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
# mypy: disable-error-code="attr-defined"

import enum
import re
from typing import Any, NamedTuple

import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton_cpu import interpreter as triton_cpu
from triton_cpu.launch import LaunchError
from triton_cpu.rewrite import KernelSourceError

triton_cpu.install()

exponential = tl.exp
HALF = tl.constexpr(0.5)
SCALES: tl.constexpr = (2.0, 3.0)
KEPT = [torch.ones(4)]


class Mode(enum.Enum):
    """Of a kernel."""

    PLAIN = 1


class Helper:
    """Has a method that is Python's."""

    def work(self):
        KEPT[0].fill_(7)


HIDDEN = tl.constexpr(Helper())


def work():
    KEPT[0].fill_(7)


@triton.constexpr_function
def doubled(value):
    return 2 * value


@triton.constexpr_function
def impure(value):
    KEPT[0].fill_(7)
    return value


@triton.jit
def twice(value):
    return value * 2


@triton.jit
def legal(x, o, n, F: tl.constexpr, MODE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    v = F(v) * HALF * SCALES[1] + float(doubled(BLOCK)) * 0 + triton.cdiv(n, n) * 0
    v = v + exponential(v * 0) - libdevice.exp(v * 0) + len((n, n)) * 0
    for k in range(1):
        v += max(k, 0)
    tl.store(o + i, v.to(tl.float32), mask=i < n)


def test_what_triton_lets_a_kernel_see_is_there():
    x, o = torch.tensor([0.5, -1.0, 2.0, 3.0]), torch.empty(4)
    legal[(1,)](x, o, 4, F=twice, MODE=Mode.PLAIN, BLOCK=4)
    assert torch.allclose(o, x * 3)


@triton.jit
def calls_a_function(o):
    work()


@triton.jit
def uses_a_tensor(o):
    tl.store(o, KEPT[0].sum())


@triton.jit
def uses_pytorch(o):
    torch.ones(4, out=o)


@triton.jit
def uses_a_hidden_object(o):
    HIDDEN.value.work()


@triton.jit
def uses_an_impure_constant(o):
    impure(1)


@triton.jit
def uses_a_module_of_a_module(o):
    triton.testing.torch.ones(4)


@pytest.mark.parametrize(
    ("kernel", "named"),
    [
        (calls_a_function, "work"),
        (uses_a_tensor, "KEPT"),
        (uses_pytorch, "torch.ones"),
        (uses_a_hidden_object, "HIDDEN.value.work"),
        (uses_an_impure_constant, "KEPT"),
        (uses_a_module_of_a_module, "triton.testing.torch.ones"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_what_is_python_s_is_refused_at_its_line(kernel, named):
    KEPT[0].fill_(1)
    with pytest.raises(KernelSourceError, match=rf":\d+: '{named}' is not available in a kernel"):
        kernel[(1,)](torch.empty(4))
    assert torch.equal(KEPT[0], torch.ones(4))


def enclosing(helper):
    @triton.jit
    def inner(o):
        helper()

    return inner


def test_free_variables_are_looked_at_too():
    with pytest.raises(KernelSourceError, match="'helper' is not available in a kernel"):
        enclosing(work)[(1,)](torch.empty(4))


@triton.jit
def takes_one(o, F: tl.constexpr):
    tl.store(o, 1.0)


@pytest.mark.parametrize("value", [work, Helper(), KEPT, torch, (1, work)])
def test_arguments_are_numbers_tensors_or_kernels(value):
    with pytest.raises(LaunchError, match=r"argument 'F' is a .*, which Triton does not accept"):
        takes_one[(1,)](torch.empty(4), value)


class Sneaky(int):
    """A number whose methods are Python's."""

    def __index__(self):
        work()
        return 1

    def __format__(self, _):
        work()
        return "1"


class Text(str):
    """A text whose methods are Python's."""

    __slots__ = ()

    def __format__(self, _):
        work()
        return ""


class Point(NamedTuple):
    """Of plain fields."""

    left: int
    right: Any


class Speaking(enum.Enum):
    """Its property works."""

    ONE = 1

    @property
    def value(self):
        work()
        return 1

    def __format__(self, _):
        work()
        return "1"


class Counting(enum.IntEnum):
    """Numbers by name."""

    TWO = 2


@pytest.mark.parametrize(
    "value",
    [Sneaky(1), Text("a"), (1, Sneaky(1)), tl.constexpr(Sneaky(1)), Point(1, Sneaky(2)),
     type("Odd", (tl.constexpr,), {})(1)],
    ids=repr,
)  # fmt: skip
def test_only_exact_plain_values_go_in(value):
    KEPT[0].fill_(1)
    with pytest.raises(LaunchError, match=r"argument 'F' is a .*, which Triton does not accept"):
        takes_one[(1,)](torch.empty(4), value)
    assert torch.equal(KEPT[0], torch.ones(4))


@triton.jit
def asks(o, M: tl.constexpr, N: tl.constexpr, P: tl.constexpr):
    tl.static_assert(M.value == 1, f"{M}")
    tl.store(o, N + M.value + P.left)


def test_members_go_in_as_copies_that_run_nothing():
    KEPT[0].fill_(1)
    o = torch.empty(1)
    asks[(1,)](o, Speaking.ONE, Counting.TWO, Point(3, 4))
    assert o.item() == 6
    assert torch.equal(KEPT[0], torch.ones(4))


@triton.jit
def asks_numbers(o, n):
    total = tl.zeros((), tl.int64)
    for i in range(n):
        for k in tl.range(n):
            tl.static_assert(i.dtype == tl.int32)
            wide = i.to(tl.int64) * n + getattr(k, "to")(tl.int64)  # noqa: B009
            tl.static_assert(wide.dtype == tl.int64)
            total += wide + (not i == k).to(tl.int64) * 100  # noqa: SIM201 - the operator in question
            if hasattr(i, "handle") or hasattr(k, "value") or getattr(i, "base", False):
                total += 1000
    half, whole = 0.5, True
    tl.store(o, total)
    tl.store(o + 1, half.to(tl.float32) + whole.to(tl.float32))


def test_the_variable_of_a_loop_has_the_attributes_of_a_tensor():
    o = torch.empty(2)
    asks_numbers[(1,)](o, 3)
    assert o.tolist() == [36 + 600, 1.5]


@triton.jit
def thrice(x):
    return x + tl.zeros_like(x) + x * 2


@triton.jit
def passes_numbers(o, n, WIDTH: tl.constexpr):
    total = tl.zeros((WIDTH.value,), tl.int32)
    for i in range(n):
        total += tl.broadcast_to(i, WIDTH) + tl.full((WIDTH,), i, tl.int32)
        total += i[None]  # type: ignore[index]
        total += thrice(i) + thrice(x=i)
        for k in tl.static_range(2):
            total += tl.sum(tl.full((WIDTH, WIDTH), k, tl.int32), axis=k)
    tl.store(o + tl.arange(0, WIDTH), total)


def test_the_variable_of_a_loop_may_be_passed_on():
    o = torch.empty(4)
    passes_numbers[(1,)](o, 5, 4)
    assert o.tolist() == [9 * 10 + 5 * 4] * 4


@triton.jit
def asks_a_number_for_data(o):
    for i in range(1):
        tl.store(o, i.handle.data.max())


@triton.jit
def asks_for_data(o):
    o.handle.data.fill(0)


@triton.jit
def asks_by_name(o, NAME: tl.constexpr):
    getattr(o, NAME)


@triton.jit
def walks(o):
    o.__class__.__init__.__globals__["os"].system("true")


@triton.jit
def defines(o):
    tl.store(o, (lambda: 1.0)())  # noqa: PLC3002


@triton.jit
def passes_hidden(o):
    tl.store(o, 1.0, _semantic=o)


@triton.jit
def hands_on_a_module(o):
    language = tl
    language.store(o, 1.0)


@triton.jit
def evaluates(o):
    eval("1")


@triton.jit
def formats(o):
    "{0.handle}".format(o)  # noqa: UP030, UP032


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (asks_for_data, "cannot read the attribute 'handle' of a tensor"),
        (asks_a_number_for_data, "cannot read the attribute 'handle' of a tensor"),
        (walks, "the attribute '__"),
        (defines, "the syntax 'Lambda', which Triton does not compile"),
        (passes_hidden, "the argument '_semantic'"),
        (hands_on_a_module, "'tl' is not available in a kernel"),
        (evaluates, "name 'eval' is not defined"),
        (formats, "cannot read the attribute 'format' of a str"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_kernel_is_tritons_language_and_no_other_python(kernel, said):
    with pytest.raises(Exception, match=re.escape(said)):
        kernel[(1,)](torch.empty(4))


@pytest.mark.parametrize("name", ["handle", "__class__", "to_ir"])
def test_attributes_asked_by_name_are_looked_at_too(name):
    with pytest.raises(AttributeError, match="cannot read the attribute"):
        asks_by_name[(1,)](torch.empty(4), name)
