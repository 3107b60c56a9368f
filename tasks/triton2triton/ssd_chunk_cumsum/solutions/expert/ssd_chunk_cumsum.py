"""Steps and summed decays: a program takes a chunk of several heads, which are neighbours in dt.

So a sector that is read serves all its heads, and rows of the results are written as a whole.
"""

import triton
import triton.language as tl

MOST_HEADS = 8
ELEMENTS_A_WARP = 256
PROGRAMS_ENOUGH = 396  # 3 on each of 132 multiprocessors


@triton.jit
def chunk_cumsum_kernel(
    dt, a, bias, delta, total, low, high, chunks, size, units,
    UNIT: tl.constexpr, HEADS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    # The parts of a chunk's heads are neighbours, as in dt.
    heads = units * UNIT  # a multiple that the compiler knows: heads are read in whole vectors
    chunk = tl.program_id(1)
    sequence = tl.program_id(2)
    head = tl.program_id(0) * HEADS + tl.arange(0, HEADS)
    time = tl.arange(0, BLOCK)
    known = head < heads
    inside = known[:, None] & (time < size)[None, :]
    first = (sequence * chunks + chunk).to(tl.int64) * size * heads
    value = tl.load(dt + first + time[None, :] * heads + head[:, None], mask=inside, other=0.0)
    shift = tl.load(bias + head, mask=known, other=0.0)
    rate = tl.load(a + head, mask=known, other=0.0)
    u = value.to(tl.float32) + shift[:, None]
    step = tl.maximum(u, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(u)))
    step = tl.minimum(tl.maximum(step, low), high)
    line = (sequence * heads + head).to(tl.int64) * chunks + chunk
    place = line[:, None] * size + time[None, :]
    tl.store(delta + place, step, mask=inside)
    tl.store(total + place, tl.cumsum(step * rate[:, None], axis=1), mask=inside)


def ssd_chunk_cumsum(dt, a, bias, delta, total, *, low, high, batch, chunks, size, heads):
    """Write steps and their decays, summed up within chunks of dt [batch, chunks * size, heads]."""
    block = triton.next_power_of_2(size)
    together = min(triton.next_power_of_2(heads), MOST_HEADS)
    # Few heads are spread over many programs: each reads its sectors for itself, but at once.
    while together > 1 and batch * chunks * triton.cdiv(heads, together) < PROGRAMS_ENOUGH:
        together //= 2
    unit = 16 // dt.element_size()
    if heads % unit or dt.data_ptr() % 16:
        unit = 1
    chunk_cumsum_kernel[(triton.cdiv(heads, together), chunks, batch)](
        dt, a, bias, delta, total, low, high, chunks, size, heads // unit,
        UNIT=unit, HEADS=together, BLOCK=block,
        num_warps=min(max(2, together * block // ELEMENTS_A_WARP), 8),
    )  # fmt: skip
