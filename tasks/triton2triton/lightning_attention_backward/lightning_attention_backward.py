"""Gradients of linear attention: three walks over chunks, with other operands and directions."""

import triton
import triton.language as tl


@triton.jit
def walk_kernel(
    a, b, c, rate, out, heads, seq, dim,
    REVERSE: tl.constexpr, BLOCK: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Columns of out[i] = sum_j f(|i - j|) * (a[i] . b[j]) * c[j], j up to i or from i on."""
    head = tl.program_id(0).to(tl.int64)  # of all sequences
    step = tl.arange(0, BLOCK)
    row = tl.arange(0, BLOCK_D)
    column = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    fade = -tl.abs(tl.load(rate + head % heads))
    apart = (step[:, None] - step[None, :]).to(tl.float32)
    decay = tl.where(apart >= 0.0, tl.exp(fade * tl.maximum(apart, 0.0)), 0.0)
    since = tl.exp(fade * (step + 1).to(tl.float32))
    left = tl.exp(fade * (BLOCK - 1 - step).to(tl.float32))
    state = tl.zeros((BLOCK_D, BLOCK_C), dtype=tl.float32)
    for start in range(0, seq, BLOCK):
        passed = start + step
        time = passed
        if REVERSE:
            time = seq - 1 - passed
        wide = (passed < seq)[:, None] & (row < dim)[None, :]
        place = (head * seq + time)[:, None] * dim + row[None, :]
        a_tile = tl.load(a + place, mask=wide, other=0.0)
        b_tile = tl.load(b + place, mask=wide, other=0.0)
        inside = (passed < seq)[:, None] & (column < dim)[None, :]
        place = (head * seq + time)[:, None] * dim + column[None, :]
        c_tile = tl.load(c + place, mask=inside, other=0.0)
        score = tl.dot(a_tile, tl.trans(b_tile), input_precision="ieee") * decay
        result = tl.dot(score.to(c_tile.dtype), c_tile, input_precision="ieee")
        earlier = a_tile.to(tl.float32) * since[:, None]
        result += tl.dot(earlier, state, input_precision="ieee")
        tl.store(out + place, result, mask=inside)
        kept = b_tile.to(tl.float32) * left[:, None]
        state *= tl.exp(fade * BLOCK)
        state += tl.dot(tl.trans(kept), c_tile.to(tl.float32), input_precision="ieee")


def lightning_attention_backward(q, k, v, rate, dy, dq, dk, dv, *, batch, heads, seq, dim):
    """Write dq, dk and dv [batch, heads, seq, dim]."""
    rows, columns = triton.next_power_of_2(dim), 32
    for a, b, c, out, reverse in (
        (dy, v, k, dq, False),
        (v, dy, q, dk, True),
        (k, q, dy, dv, True),
    ):
        walk_kernel[(batch * heads, triton.cdiv(dim, columns))](
            a, b, c, rate, out, heads, seq, dim,
            REVERSE=reverse, BLOCK=32, BLOCK_D=rows, BLOCK_C=columns, num_stages=1,
        )  # fmt: skip
