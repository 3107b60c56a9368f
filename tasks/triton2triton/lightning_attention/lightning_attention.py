"""Linear attention with decay: one program for 32 columns of a head, which walks over chunks."""

import triton
import triton.language as tl


@triton.jit
def lightning_kernel(
    q, k, v, rate, y, last, heads, seq, dim,
    BLOCK: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)  # of all sequences
    step = tl.arange(0, BLOCK)
    row = tl.arange(0, BLOCK_D)
    column = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    fade = -tl.abs(tl.load(rate + head % heads))
    apart = (step[:, None] - step[None, :]).to(tl.float32)
    decay = tl.where(apart >= 0.0, tl.exp(fade * tl.maximum(apart, 0.0)), 0.0)
    since = tl.exp(fade * (step + 1).to(tl.float32))
    state = tl.zeros((BLOCK_D, BLOCK_C), dtype=tl.float32)
    for start in range(0, seq, BLOCK):
        time = start + step
        wide = (time < seq)[:, None] & (row < dim)[None, :]
        place = (head * seq + time)[:, None] * dim + row[None, :]
        query = tl.load(q + place, mask=wide, other=0.0)
        key = tl.load(k + place, mask=wide, other=0.0)
        inside = (time < seq)[:, None] & (column < dim)[None, :]
        place = (head * seq + time)[:, None] * dim + column[None, :]
        value = tl.load(v + place, mask=inside, other=0.0)
        score = tl.dot(query, tl.trans(key), input_precision="ieee") * decay
        result = tl.dot(score.to(value.dtype), value, input_precision="ieee")
        earlier = query.to(tl.float32) * since[:, None]
        result += tl.dot(earlier, state, input_precision="ieee")
        tl.store(y + place, result, mask=inside)
        count = tl.minimum(seq - start, BLOCK)
        left = tl.where(step < count, tl.exp(fade * tl.maximum(count - 1 - step, 0)), 0.0)
        kept = key.to(tl.float32) * left[:, None]
        state *= tl.exp(fade * count)
        state += tl.dot(tl.trans(kept), value.to(tl.float32), input_precision="ieee")
    inside = (row < dim)[:, None] & (column < dim)[None, :]
    place = (head * dim + row)[:, None] * dim + column[None, :]
    tl.store(last + place, state, mask=inside)


def lightning_attention(q, k, v, rate, y, last, *, batch, heads, seq, dim):
    """Write y [batch, heads, seq, dim] and the last states."""
    lightning_kernel[(batch * heads, triton.cdiv(dim, 32))](
        q, k, v, rate, y, last, heads, seq, dim,
        BLOCK=32, BLOCK_D=triton.next_power_of_2(dim), BLOCK_C=32, num_stages=1,
    )  # fmt: skip
