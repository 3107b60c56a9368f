"""Linear attention with decay: one program for 32 columns of a head, in chunks of 64 positions."""

import triton
import triton.language as tl


@triton.jit
def lightning_kernel(
    q, k, v, y, share, heads, seq, dim,
    BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_V: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)  # of all sequences
    rate = share * tl.exp2(-8.0 * (head % heads + 1).to(tl.float32) / heads)
    deep = tl.arange(0, BLOCK_D)
    column = tl.program_id(1) * BLOCK_V + tl.arange(0, BLOCK_V)
    step = tl.arange(0, BLOCK_T)
    back = step[:, None] - step[None, :]
    decay = tl.where(back >= 0, tl.exp(-rate * tl.maximum(back, 0)), 0.0)
    state = tl.zeros((BLOCK_D, BLOCK_V), dtype=tl.float32)  # of the position before the chunk
    for start in range(0, seq, BLOCK_T):
        time = start + step
        here = (time < seq)[:, None]
        line = (head * seq + time)[:, None] * dim
        keys = here & (deep < dim)[None, :]
        values = here & (column < dim)[None, :]
        q_tile = tl.load(q + line + deep[None, :], mask=keys, other=0.0)
        k_tile = tl.load(k + line + deep[None, :], mask=keys, other=0.0)
        v_tile = tl.load(v + line + column[None, :], mask=values, other=0.0)
        score = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * decay
        result = tl.dot(score.to(v_tile.dtype), v_tile, input_precision="ieee")
        earlier = tl.dot(q_tile, state.to(q_tile.dtype), input_precision="ieee")
        result += earlier * tl.exp(-rate * (step + 1))[:, None]
        tl.store(y + line + column[None, :], result, mask=values)
        remaining = tl.exp(-rate * (BLOCK_T - 1 - step))[:, None]
        scaled = (k_tile.to(tl.float32) * remaining).to(v_tile.dtype)
        state = state * tl.exp(-rate * BLOCK_T)
        state += tl.dot(tl.trans(scaled), v_tile, input_precision="ieee")


def lightning_attention(q, k, v, y, *, share, batch, heads, seq, dim):
    """Write decayed linear attention of q [batch, heads, seq, dim] into y."""
    lightning_kernel[(batch * heads, triton.cdiv(dim, 32))](
        q, k, v, y, share, heads, seq, dim,
        BLOCK_T=64, BLOCK_D=triton.next_power_of_2(dim), BLOCK_V=32, num_stages=1,
    )  # fmt: skip
