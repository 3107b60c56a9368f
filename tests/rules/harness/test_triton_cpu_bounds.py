"""Every memory access of a Triton kernel on the cpu platform is checked."""

# ruff: noqa: N803  (constants of a kernel are written in capitals)
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

import pytest
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor
from triton_cpu import interpreter as triton_cpu
from triton_cpu.bounds import Allocation, Memory, OutOfBoundsError

triton_cpu.install()


@triton.jit
def copy(x, o, n, shift, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(o + i, tl.load(x + i + shift, mask=m), mask=m)


@triton.jit
def count(o, at, BLOCK: tl.constexpr):
    tl.atomic_add(o + at + tl.arange(0, BLOCK), 1)


@triton.jit
def swap(o, at):
    tl.atomic_cas(o + at, 0, 1)


def test_access_within_the_tensors_is_silent():
    x, o = torch.randn(100), torch.empty(100)
    copy[(2,)](x, o, 100, 0, BLOCK=64)
    assert torch.equal(x, o)


def test_load_past_the_end_is_named():
    x, o = torch.randn(100), torch.empty(100)
    with pytest.raises(OutOfBoundsError) as caught:
        copy[(2,)](x, o, 100, 3, BLOCK=64)
    error = caught.value
    assert (error.access, error.allocation, error.offset) == ("load", "x", 400)
    assert (error.lanes, error.program) == (3, (1, 0, 0))
    assert str(error) == (
        "load of 4 bytes out of bounds: byte 400 of 'x' (400 bytes), 3 lanes, program (1, 0, 0)"
    )


def test_load_before_the_start_is_named():
    x, o = torch.randn(100), torch.empty(100)
    with pytest.raises(OutOfBoundsError) as caught:
        copy[(2,)](x, o, 100, -2, BLOCK=64)
    assert (caught.value.access, caught.value.offset, caught.value.lanes) == ("load", -8, 2)


def test_store_past_the_end_writes_nothing():
    x, memory = torch.randn(128), torch.zeros(128)
    with (
        triton_cpu.tensors(x=x, o=memory[:100]),
        pytest.raises(OutOfBoundsError, match="store of 4 bytes out of bounds: byte 400 of 'o'"),
    ):
        copy[(1,)](x, memory, 128, 0, BLOCK=128)
    assert not memory.any()


@pytest.mark.parametrize(("kernel", "options"), [(count, {"BLOCK": 4}), (swap, {})])
def test_atomics_are_checked(kernel, options):
    o = torch.zeros(4, dtype=torch.int32)
    kernel[(1,)](o, 0, **options)
    assert o[0] == 1
    with pytest.raises(OutOfBoundsError, match="atomic of 4 bytes"):
        kernel[(1,)](o, 4, **options)


def test_masked_lanes_may_point_anywhere():
    x, o = torch.randn(5), torch.empty(5)
    copy[(1,)](x, o, 5, 0, BLOCK=1024)
    assert torch.equal(x, o)


def test_a_registered_extent_overrides_the_storage_around_it():
    slab = torch.zeros(300)
    x, o = slab[100:200], torch.empty(100)
    copy[(1,)](x, o, 100, 20, BLOCK=128)
    with (
        triton_cpu.tensors(x=x),
        pytest.raises(OutOfBoundsError, match=r"byte 400 of 'x' \(400 bytes\), 20 lanes"),
    ):
        copy[(1,)](x, o, 100, 20, BLOCK=128)


def test_tensors_that_the_candidate_allocates_are_legal():
    x, o = torch.randn(64), torch.empty(64)
    with triton_cpu.tensors(x=x, o=o):
        scratch = torch.empty(64)
        copy[(1,)](x, scratch, 64, 0, BLOCK=64)
        copy[(1,)](scratch, o, 64, 0, BLOCK=64)
    assert torch.equal(x, o)


def test_registration_ends_with_the_context():
    x, o = torch.randn(100), torch.empty(100)
    with triton_cpu.tensors(x=x[:50], o=o):
        pass
    copy[(1,)](x[:50], o, 100, 0, BLOCK=128)
    assert torch.equal(x, o)


@triton.jit
def indirect(table, o, n, BLOCK: tl.constexpr):
    p = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    i = tl.arange(0, BLOCK)
    tl.store(o + tl.program_id(0) * n + i, tl.load(p + i, mask=i < n), mask=i < n)


def test_pointers_from_memory_reach_registered_tensors_only():
    a, b, o = torch.randn(7), torch.randn(7), torch.empty(2, 7)
    table = torch.tensor([a.data_ptr(), b.data_ptr()], dtype=torch.int64)
    with triton_cpu.tensors(a=a, b=b):
        indirect[(2,)](table, o, 7, BLOCK=8)
    assert torch.equal(o, torch.stack([a, b]))
    with pytest.raises(OutOfBoundsError):
        indirect[(2,)](table, o, 7, BLOCK=8)


@triton.jit
def block_pointer(x, o, rows, cols, at, B: tl.constexpr, CHECK: tl.constexpr):
    p = tl.make_block_ptr(x, (rows, cols), (cols, 1), (at, 0), (B, B), (1, 0))
    v = tl.load(p, boundary_check=(0, 1) if CHECK else (), padding_option="zero" if CHECK else "")
    i = tl.arange(0, B)
    tl.store(o + i[:, None] * B + i[None, :], v)


def test_block_pointer_without_boundary_check_is_checked():
    x, o = torch.randn(8, 8), torch.empty(8, 8)
    block_pointer[(1,)](x, o, 8, 8, 4, B=8, CHECK=True)
    assert torch.equal(o[:4], x[4:])
    with pytest.raises(OutOfBoundsError, match="byte 256 of 'x'"):
        block_pointer[(1,)](x, o, 8, 8, 4, B=8, CHECK=False)


@triton.jit
def described(x, o, B: tl.constexpr):
    o.store([0, 0], x.load([0, 4]))


def test_host_descriptors_register_their_tensors():
    x, o = torch.randn(4, 16), torch.empty(4, 8)
    descriptors = [TensorDescriptor.from_tensor(tensor, [4, 8]) for tensor in (x, o)]
    described[(1,)](*descriptors, B=8)
    assert torch.equal(o, x[:, 4:12])


def test_a_descriptor_wider_than_its_tensor_is_caught():
    x, o = torch.randn(4, 16), torch.empty(4, 8)
    wrong = TensorDescriptor(x, [8, 16], [16, 1], [8, 8])
    target = TensorDescriptor.from_tensor(torch.empty(8, 8), [8, 8])
    with pytest.raises(OutOfBoundsError, match="byte 272 of 'x'"):
        described[(1,)](wrong, target, B=8)
    assert o.numel() == 32


def test_an_undefined_lane_reads_nan():
    """A masked lane without `other` is undefined on a GPU; here its use shows."""

    x, o = torch.ones(5), torch.empty(1)
    unmasked_sum[(1,)](x, o, 5, BLOCK=8)
    assert o.isnan().all()


@triton.jit
def unmasked_sum(x, o, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o, tl.sum(tl.load(x + i, mask=i < n), axis=0))


def test_overlapping_and_adjacent_allocations():
    memory = Memory()
    everywhere = [Allocation("a", 100, 50), Allocation("b", 120, 80), Allocation("c", 200, 8)]
    with memory.registered(everywhere):
        memory.check("load", _at(100, 196), _on(2), 4, (0, 0, 0))
        memory.check("load", _at(200, 204), _on(2), 4, (0, 0, 0))
        with pytest.raises(OutOfBoundsError) as caught:
            memory.check("load", _at(198), _on(1), 4, (0, 0, 0))
        assert caught.value.allocation == "b"
    with pytest.raises(OutOfBoundsError, match="no tensor is registered"):
        memory.check("load", _at(100), _on(1), 4, (0, 0, 0))


def _at(*addresses):
    return torch.tensor(addresses, dtype=torch.int64).numpy().astype("uint64")


def _on(lanes):
    return torch.ones(lanes, dtype=torch.bool).numpy()
