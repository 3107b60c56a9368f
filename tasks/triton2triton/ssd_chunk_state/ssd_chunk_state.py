"""States of chunks: the weights of all positions into a buffer, then a product for each head."""

import torch
import triton
import triton.language as tl


@triton.jit
def weight_kernel(dt, rate, bias, weight, size, heads, BLOCK: tl.constexpr):
    """Weights of one chunk of one head: [batch * chunks, heads, size]."""
    chunk = tl.program_id(0).to(tl.int64)  # of all sequences
    head = tl.program_id(1)
    time = tl.arange(0, BLOCK)
    inside = time < size
    u = tl.load(dt + (chunk * size + time) * heads + head, mask=inside, other=0.0)
    u = u.to(tl.float32) + tl.load(bias + head)
    small = tl.exp(-tl.abs(u))
    series = small * (1.0 - small * (0.5 - small * (1.0 / 3.0 - small * 0.25)))  # of log(1 + small)
    step = tl.maximum(u, 0.0) + tl.where(small < 0.01, series, tl.log(1.0 + small))
    step = tl.where(inside, step, 0.0)
    after = tl.cumsum(step, axis=0, reverse=True) - step
    value = tl.exp(-tl.abs(tl.load(rate + head)) * after) * step
    tl.store(weight + (chunk * heads + head) * size + time, value, mask=inside)


@triton.jit
def state_kernel(
    x, b, weight, state, size, heads, dim, states,
    BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_S: tl.constexpr,
):  # fmt: skip
    """The state of one chunk of one head, 64 of its columns."""
    chunk = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    row = tl.arange(0, BLOCK_D)
    column = tl.program_id(2) * BLOCK_S + tl.arange(0, BLOCK_S)
    total = tl.zeros((BLOCK_D, BLOCK_S), dtype=tl.float32)
    for start in range(0, size, BLOCK_T):
        time = start + tl.arange(0, BLOCK_T)
        here = time < size
        place = chunk * size + time
        factor = tl.load(weight + (chunk * heads + head) * size + time, mask=here, other=0.0)
        x_place = (place * heads + head)[:, None] * dim + row[None, :]
        x_tile = tl.load(x + x_place, mask=here[:, None] & (row < dim)[None, :], other=0.0)
        b_place = place[:, None] * states + column[None, :]
        b_tile = tl.load(b + b_place, mask=here[:, None] & (column < states)[None, :], other=0.0)
        weighted = (x_tile.to(tl.float32) * factor[:, None]).to(x_tile.dtype)
        total += tl.dot(tl.trans(weighted), b_tile, input_precision="ieee")
    place = ((chunk * heads + head) * dim + row)[:, None] * states + column[None, :]
    tl.store(state + place, total, mask=(row < dim)[:, None] & (column < states)[None, :])


def ssd_chunk_state(x, b, dt, rate, bias, state, *, batch, chunks, size, heads, dim, states):
    """Write state [batch, chunks, heads, dim, states]."""
    weight = torch.empty((batch * chunks, heads, size), dtype=torch.float32, device=x.device)
    weight_kernel[(batch * chunks, heads)](
        dt, rate, bias, weight, size, heads, BLOCK=triton.next_power_of_2(size), num_warps=2
    )
    state_kernel[(batch * chunks, heads, triton.cdiv(states, 64))](
        x, b, weight, state, size, heads, dim, states,
        BLOCK_T=32, BLOCK_D=triton.next_power_of_2(dim), BLOCK_S=64, num_stages=1,
    )  # fmt: skip
