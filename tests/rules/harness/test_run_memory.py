"""The shared buffers and messages, looked at from the judge's side alone."""

# mypy: allow-untyped-defs, allow-untyped-calls

import mmap
import os

import pytest
import run_support  # noqa: F401 (finds the tools)
import torch
from base.tensors import poison_mask, torch_dtype
from hypothesis import given
from hypothesis import strategies as st
from runners.buffers import GuardDamage, InputArena, OutputArena, _equal
from runners.control_block import ControlBlock, Region
from runners.protocol import SIZE, Kind, Message
from runners.shared_memory import HOST, shared_file
from terms.dtypes import DTYPES, ONLY_GIVEN

NAMES = st.text("abcxyz_", min_size=1, max_size=31)
I64 = st.integers(-(2**63), 2**63 - 1)
U64 = st.integers(0, 2**64 - 1)


def region(name: str, size: int, dtype: str = "u8") -> Region:
    kind = DTYPES[dtype]
    return Region(name, 0, size * kind.size, kind.code, (size,))


@given(st.sampled_from(Kind), U64, st.lists(I64, max_size=6))
def test_message_round_trip(kind, nonce, values):
    message = Message(kind, nonce, tuple(values))
    padded = (*values, *(0,) * (6 - len(values)))

    assert len(message.encode()) == SIZE
    assert Message.decode(message.encode()) == Message(kind, nonce, padded)


@given(st.binary(max_size=2 * SIZE))
def test_other_bytes_are_no_message(data):
    with pytest.raises(ValueError, match=r"message|Kind"):
        Message.decode(data)


@pytest.mark.parametrize("size", [0, 1, 8, 15, 64, 65])
@pytest.mark.parametrize("first", [0, 3, 8])
@pytest.mark.parametrize("rows", [1, 2])
def test_a_byte_that_differs_anywhere_is_seen(size, first, rows):
    memory = torch.arange(rows * 100, dtype=torch.uint8).view(rows, 100)
    one, other = memory[:, first : first + size], memory.clone()[:, first : first + size]
    assert _equal(one, other)
    for row in range(rows):
        for place in {0, size - 1} if size else ():
            other[row, place] ^= 1
            assert not _equal(one, other)
            other[row, place] ^= 1


REGIONS = st.builds(
    lambda name, shape: Region(name, 4096, 64, 1, tuple(shape)),
    NAMES,
    st.lists(st.integers(0, 2**40), max_size=8),
)


@given(
    st.lists(REGIONS, max_size=8),
    st.lists(REGIONS, max_size=8),
    st.lists(st.tuples(NAMES, I64 | st.floats(allow_nan=False)), max_size=8),
    st.lists(st.tuples(NAMES, I64), max_size=8),
)
def test_control_block_round_trip(inputs, outputs, scalars, dims):
    block = ControlBlock(
        ("entry_f32", "entry"), tuple(inputs), tuple(outputs), tuple(scalars), tuple(dims),
        (8192, 16384), (1 << 20, 1 << 21), mmap.PAGESIZE, 7,
    )  # fmt: skip

    assert len(block.encode()) == block.order_offset
    assert ControlBlock.decode(block.encode()) == block


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": (region("x", 1),) * 17}, "17 inputs"),
        ({"inputs": (Region("x", 0, 1, 1, (1,) * 9),)}, "more than 8 axes"),
        ({"dims": tuple((f"d{i}", 1) for i in range(17))}, "17 dims"),
        ({"dims": (("d" * 32, 1),)}, "longer than 31 bytes"),
        ({"symbols": ("s" * 128, "s")}, "longer than 127 bytes"),
    ],
)
def test_control_block_has_limits(change, message):
    fields = {"symbols": ("a", "b"), "inputs": (), "outputs": (), "scalars": (), "dims": (),
              "strides": (1, 1), "sizes": (1, 1), "page": 4096, "slots": 1}  # fmt: skip
    with pytest.raises(ValueError, match=message):
        ControlBlock(**{**fields, **change}).encode()


def test_sealed_memory_is_the_judges_alone():
    fd, memory = shared_file(8192, sealed=True)
    memory[0] = 7
    try:
        assert mmap.mmap(fd, 8192, mmap.MAP_SHARED, mmap.PROT_READ)[0] == 7
        reopened = os.open(f"/proc/self/fd/{fd}", os.O_RDWR)
        for attempt in (
            lambda: mmap.mmap(fd, 8192),
            lambda: mmap.mmap(reopened, 8192),
            lambda: os.pwrite(fd, b"x", 0),
            lambda: os.ftruncate(fd, 0),
            lambda: os.ftruncate(fd, 1 << 20),
        ):
            with pytest.raises(PermissionError):
                attempt()
        os.close(reopened)
        assert memory[0] == 7
    finally:
        os.close(fd)


def test_unsealed_memory_keeps_its_size():
    fd, memory = shared_file(8192, sealed=False)
    os.pwrite(fd, b"x", 5)
    assert memory[5] == ord("x")
    with pytest.raises(PermissionError):
        os.ftruncate(fd, 0)
    os.close(fd)


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 100_000])
def test_any_byte_beside_an_output_is_guarded(size):
    """One damaged byte anywhere in a guard is found, with its distance."""
    arena = OutputArena([region("y", size), region("z", 3)], 3, HOST)
    arena.poison()
    arena.check_guards()
    first = arena.regions[0].first
    for slot, offset in ((0, 0), (2, mmap.PAGESIZE - 1), (1, -1), (2, -mmap.PAGESIZE)):
        at = first + offset + (size if offset >= 0 else 0)
        arena._grid[slot, at] ^= 0xFF
        with pytest.raises(GuardDamage) as caught:
            arena.check_guards()
        assert (caught.value.name, caught.value.slot, caught.value.offset) == ("y", slot, offset)
        arena._grid[slot, at] ^= 0xFF
    arena.check_guards()
    arena.close()


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name not in ONLY_GIVEN])
def test_poison_shows_what_was_not_written(dtype):
    arena = OutputArena([region("y", 100, dtype)], 2, HOST)
    arena.poison()
    arena._bytes(arena.regions[0])[1, : 40 * DTYPES[dtype].size] = 1
    untouched, written = arena.read(0)["y"], arena.read(1)["y"]

    assert untouched.dtype == torch_dtype(dtype)
    assert poison_mask(untouched, dtype).all()
    assert not poison_mask(written, dtype)[:40].any()
    assert poison_mask(written, dtype)[40:].all()
    if untouched.is_floating_point():
        assert untouched.isnan().all()
    arena.close()


def test_changed_input_is_found_by_its_bits():
    arena = InputArena([region("x", 10, "f32"), region("i", 10, "i64")], 2, HOST, sealed=False)
    tensors = {"x": torch.full((10,), float("nan")), "i": torch.arange(10)}
    arena.write(1, tensors)
    assert arena.mutated(1, tensors) is None

    arena._bytes(arena.regions[1])[1, 79] ^= 1
    assert arena.mutated(1, tensors) == "i"
    arena.close()


@given(st.lists(st.integers(0, 20_000), min_size=1, max_size=5), st.integers(1, 4))
def test_inputs_end_where_a_gap_begins(sizes, slots):
    """An access 255 bytes past any input is in a page that belongs to no input."""
    regions = [region(f"x{i}", size) for i, size in enumerate(sizes)]
    arena = InputArena(regions, slots, HOST, sealed=True)
    spans = [(r.first, r.first + r.size) for r in arena.regions if r.size]
    pages = [set(range(low // mmap.PAGESIZE, -(-high // mmap.PAGESIZE))) for low, high in spans]

    assert len(set().union(*pages)) == sum(len(own) for own in pages), "each has its own pages"
    for low, high in spans:
        assert low % 256 == 0
        assert not any((high + 255) // mmap.PAGESIZE in own for own in pages)
    arena.close()
