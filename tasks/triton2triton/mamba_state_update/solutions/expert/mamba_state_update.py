"""A decoded token of Mamba-2 in one pass: a new state is stored and summed up from registers.

A program takes some rows of a head's state, fewer where there are few heads to fill a device with.
"""

import triton
import triton.language as tl

LARGEST_TILE = 4096
SMALLEST_TILE = 1024
PROGRAMS_WANTED = 1056  # 8 on each of 132 multiprocessors


@triton.jit
def update_kernel(
    state, x, dt, b, c, gate, rate, dt_bias, skip, state_new, y,
    heads, dim, group_heads, states, blocks, BLOCK_D: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    own = program // blocks  # a head of a sequence
    head = own % heads
    row = program % blocks * BLOCK_D + tl.arange(0, BLOCK_D)
    column = tl.arange(0, BLOCK_N)
    known = row < dim
    inside = known[:, None] & (column < states)[None, :]
    # A head's own places fit 32 bits.
    at = row[:, None] * states + column[None, :]
    first = own.to(tl.int64) * dim * states
    old = tl.load(state + first + at, mask=inside, other=0.0, eviction_policy="evict_first")
    place = own * dim + row  # below 2^26
    value = tl.load(x + place, mask=known, other=0.0).to(tl.float32)
    z = tl.load(gate + place, mask=known, other=0.0).to(tl.float32)
    line = own // group_heads * states + column  # groups follow each other as heads do
    key = tl.load(b + line, mask=column < states, other=0.0).to(tl.float32)
    query = tl.load(c + line, mask=column < states, other=0.0).to(tl.float32)
    u = tl.load(dt + own).to(tl.float32) + tl.load(dt_bias + head)
    step = tl.maximum(u, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(u)))
    keep = tl.exp(-tl.abs(tl.load(rate + head)) * step)
    new = keep * old.to(tl.float32) + (step * value)[:, None] * key[None, :]
    tl.store(state_new + first + at, new, mask=inside)
    result = tl.sum(new * query[None, :], axis=1) + tl.load(skip + head) * value
    tl.store(y + place, result * z * tl.sigmoid(z), mask=known)


def mamba_state_update(
    state, x, dt, b, c, gate, rate, dt_bias, skip, state_new, y,
    *, batch, heads, dim, groups, states,
):  # fmt: skip
    """Write state_new [batch, heads, dim, states] and y [batch, heads, dim]."""
    columns = triton.next_power_of_2(states)
    most = triton.next_power_of_2(dim)
    rows = min(LARGEST_TILE // columns, most)
    while rows * columns > SMALLEST_TILE and batch * heads * (most // rows) < PROGRAMS_WANTED:
        rows //= 2
    blocks = triton.cdiv(dim, rows)
    update_kernel[(batch * heads * blocks,)](
        state, x, dt, b, c, gate, rate, dt_bias, skip, state_new, y,
        heads, dim, heads // groups, states, blocks,
        BLOCK_D=rows, BLOCK_N=columns, num_warps=max(1, min(4, rows * columns // 512)),
    )  # fmt: skip
