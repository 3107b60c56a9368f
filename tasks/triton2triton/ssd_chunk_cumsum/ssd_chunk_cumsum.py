"""Steps and summed decays: one program for each chunk of each head, with a prefix sum over it."""

import triton
import triton.language as tl


@triton.jit
def chunk_cumsum_kernel(
    dt, a, bias, delta, total, low, high, chunks, size, heads, BLOCK: tl.constexpr
):
    chunk = tl.program_id(0)
    head = tl.program_id(1)
    sequence = tl.program_id(2).to(tl.int64)
    time = tl.arange(0, BLOCK)
    inside = time < size
    source = ((sequence * chunks + chunk) * size + time) * heads + head
    u = tl.load(dt + source, mask=inside, other=0.0).to(tl.float32) + tl.load(bias + head)
    step = tl.maximum(u, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(u)))
    step = tl.minimum(tl.maximum(step, low), high)
    place = ((sequence * heads + head) * chunks + chunk) * size + time
    tl.store(delta + place, step, mask=inside)
    tl.store(total + place, tl.cumsum(step * tl.load(a + head), axis=0), mask=inside)


def ssd_chunk_cumsum(dt, a, bias, delta, total, *, low, high, batch, chunks, size, heads):
    """Write steps and their decays, summed up within chunks of dt [batch, chunks * size, heads]."""
    chunk_cumsum_kernel[(chunks, heads, batch)](
        dt, a, bias, delta, total, low, high, chunks, size, heads,
        BLOCK=triton.next_power_of_2(size), num_warps=2,
    )  # fmt: skip
