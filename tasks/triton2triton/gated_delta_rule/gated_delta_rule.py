"""The gated delta rule: one program for 32 columns of a head's state, position by position."""

import triton
import triton.language as tl


@triton.jit
def delta_kernel(
    q, k, v, keep, learn, y, last, seq, heads, keys, values,
    BLOCK_K: tl.constexpr, BLOCK_V: tl.constexpr,
):  # fmt: skip
    sequence = (tl.program_id(0) // heads).to(tl.int64)
    head = tl.program_id(0) % heads
    row = tl.arange(0, BLOCK_K)
    column = tl.program_id(1) * BLOCK_V + tl.arange(0, BLOCK_V)
    inside = (row < keys)[:, None] & (column < values)[None, :]
    state = tl.zeros((BLOCK_K, BLOCK_V), dtype=tl.float32)
    for t in range(seq):
        place = (sequence * seq + t) * heads + head
        key = tl.load(k + place * keys + row, mask=row < keys, other=0.0).to(tl.float32)
        query = tl.load(q + place * keys + row, mask=row < keys, other=0.0).to(tl.float32)
        value = tl.load(v + place * values + column, mask=column < values, other=0.0)
        key /= tl.sqrt(tl.sum(key * key, axis=0) + 1e-6)
        query /= tl.sqrt(tl.sum(query * query, axis=0) + 1e-6)
        state *= tl.sigmoid(tl.load(keep + place).to(tl.float32))
        known = tl.sum(key[:, None] * state, axis=0)
        rate = tl.sigmoid(tl.load(learn + place).to(tl.float32))
        change = rate * (value.to(tl.float32) - known)
        state += key[:, None] * change[None, :]
        result = tl.sum(query[:, None] * state, axis=0)
        tl.store(y + place * values + column, result, mask=column < values)
    line = ((sequence * heads + head) * keys + row)[:, None] * values
    tl.store(last + line + column[None, :], state, mask=inside)


def gated_delta_rule(q, k, v, keep, learn, y, last, *, batch, seq, heads, keys, values):
    """Write y [batch, seq, heads, values] and the last states."""
    delta_kernel[(batch * heads, triton.cdiv(values, 32))](
        q, k, v, keep, learn, y, last, seq, heads, keys, values,
        BLOCK_K=triton.next_power_of_2(keys), BLOCK_V=32, num_warps=4,
    )  # fmt: skip
