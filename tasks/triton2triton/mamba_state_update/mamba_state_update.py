"""A decoded token of Mamba-2: the new states, then sums over them from the states before."""

import triton
import triton.language as tl


@triton.jit
def step_of(dt, dt_bias, sequence, head, heads):
    u = tl.load(dt + sequence * heads + head).to(tl.float32) + tl.load(dt_bias + head)
    return tl.maximum(u, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(u)))


@triton.jit
def moved(state, x, dt, b, rate, dt_bias, sequence, head, row, column, heads, dim, groups, states):
    """The new states of some rows of a head, in float32."""
    step = step_of(dt, dt_bias, sequence, head, heads)
    keep = tl.exp(-tl.abs(tl.load(rate + head)) * step)
    group = head // (heads // groups)
    inside = (row < dim)[:, None] & (column < states)[None, :]
    place = ((sequence * heads + head) * dim + row)[:, None] * states + column[None, :]
    old = tl.load(state + place, mask=inside, other=0.0).to(tl.float32)
    value = tl.load(x + (sequence * heads + head) * dim + row, mask=row < dim, other=0.0)
    line = (sequence * groups + group) * states + column
    key = tl.load(b + line, mask=column < states, other=0.0).to(tl.float32)
    return keep * old + (step * value.to(tl.float32))[:, None] * key[None, :]


@triton.jit
def state_kernel(
    state, x, dt, b, rate, dt_bias, state_new, heads, dim, groups, states,
    BLOCK_D: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    sequence = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    row = tl.program_id(2) * BLOCK_D + tl.arange(0, BLOCK_D)
    column = tl.arange(0, BLOCK_N)
    new = moved(
        state, x, dt, b, rate, dt_bias, sequence, head, row, column, heads, dim, groups, states
    )
    inside = (row < dim)[:, None] & (column < states)[None, :]
    place = ((sequence * heads + head) * dim + row)[:, None] * states + column[None, :]
    tl.store(state_new + place, new, mask=inside)


@triton.jit
def output_kernel(
    state, x, dt, b, c, gate, rate, dt_bias, skip, y, heads, dim, groups, states,
    BLOCK_D: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    sequence = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    row = tl.program_id(2) * BLOCK_D + tl.arange(0, BLOCK_D)
    column = tl.arange(0, BLOCK_N)
    new = moved(
        state, x, dt, b, rate, dt_bias, sequence, head, row, column, heads, dim, groups, states
    )
    line = (sequence * groups + head // (heads // groups)) * states + column
    query = tl.load(c + line, mask=column < states, other=0.0).to(tl.float32)
    place = (sequence * heads + head) * dim + row
    value = tl.load(x + place, mask=row < dim, other=0.0).to(tl.float32)
    z = tl.load(gate + place, mask=row < dim, other=0.0).to(tl.float32)
    result = tl.sum(new * query[None, :], axis=1) + tl.load(skip + head) * value
    tl.store(y + place, result * z * tl.sigmoid(z), mask=row < dim)


def mamba_state_update(
    state, x, dt, b, c, gate, rate, dt_bias, skip, state_new, y,
    *, batch, heads, dim, groups, states,
):  # fmt: skip
    """Write state_new [batch, heads, dim, states] and y [batch, heads, dim]."""
    grid = (batch, heads, triton.cdiv(dim, 32))
    columns = triton.next_power_of_2(states)
    state_kernel[grid](
        state, x, dt, b, rate, dt_bias, state_new, heads, dim, groups, states,
        BLOCK_D=32, BLOCK_N=columns,
    )  # fmt: skip
    output_kernel[grid](
        state, x, dt, b, c, gate, rate, dt_bias, skip, y, heads, dim, groups, states,
        BLOCK_D=32, BLOCK_N=columns,
    )  # fmt: skip
