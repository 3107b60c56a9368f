"""A kernel on the cpu platform changes no list that other programs, or its module, see."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

import pytest
import torch
import triton
import triton.language as tl
from triton_cpu import interpreter as triton_cpu
from triton_cpu.rewrite import KernelSourceError

triton_cpu.install()

NUMBERS = [0.0, 0.0]


@triton.jit
def stores_at_an_index(o):
    NUMBERS[0] = tl.load(o)


@triton.jit
def adds_at_an_index(o):
    NUMBERS[0] += tl.load(o)


@triton.jit
def stores_in_a_slice(o):
    NUMBERS[:1] = [tl.load(o)]


@triton.jit
def stores_by_a_tuple(o):
    _first, NUMBERS[0] = tl.load(o), tl.load(o)


@triton.jit
def stores_by_a_loop(o):
    for NUMBERS[0] in range(3):
        tl.store(o, 1.0)


@triton.jit
def stores_by_a_list(o):
    tl.store(o, len([0 for NUMBERS[0] in range(3)]))


@triton.constexpr_function
def stores_when_asked(value):
    NUMBERS[0] = value
    return value


@triton.jit
def stores_in_a_constant(o):
    stores_when_asked(tl.load(o))


@pytest.mark.parametrize(
    "kernel",
    [
        stores_at_an_index,
        adds_at_an_index,
        stores_in_a_slice,
        stores_by_a_tuple,
        stores_by_a_loop,
        stores_by_a_list,
        stores_in_a_constant,
    ],
    ids=lambda value: value.__name__,
)
def test_nothing_is_assigned_to_a_subscript(kernel):
    said = r":\d+: an assignment to a subscript, which Triton does not compile"
    with pytest.raises(KernelSourceError, match=said):
        kernel[(1,)](torch.ones(4))


@triton.constexpr_function
def lengthened(value):
    kept = NUMBERS
    kept += [value]
    return len(NUMBERS)


@triton.jit
def lengthens(o, default=NUMBERS):
    kept = NUMBERS
    kept += [tl.load(o)]
    kept *= 2
    default += [tl.load(o)]
    constant = lengthened(1)
    tl.store(o + tl.program_id(0), len(kept) * 100 + len(NUMBERS) * 10 + len(default) + constant)


def test_no_program_lengthens_a_list_for_the_next():
    o = torch.empty(3)
    lengthens[(3,)](o)
    assert o.tolist() == [600 + 20 + 3 + 2] * 3
