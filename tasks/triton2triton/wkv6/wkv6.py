"""The recurrence of RWKV-6: one program for 32 columns of a head's state, position by position."""

import triton
import triton.language as tl


@triton.jit
def wkv6_kernel(
    r, k, v, w, u, first, y, last, seq, heads, dim,
    BLOCK_K: tl.constexpr, BLOCK_V: tl.constexpr,
):  # fmt: skip
    sequence = (tl.program_id(0) // heads).to(tl.int64)
    head = tl.program_id(0) % heads
    row = tl.arange(0, BLOCK_K)
    column = tl.program_id(1) * BLOCK_V + tl.arange(0, BLOCK_V)
    inside = (row < dim)[:, None] & (column < dim)[None, :]
    corner = ((sequence * heads + head) * dim + row)[:, None] * dim + column[None, :]
    state = tl.load(first + corner, mask=inside, other=0.0)
    bonus = tl.load(u + head * dim + row, mask=row < dim, other=0.0)
    for t in range(seq):
        place = ((sequence * seq + t) * heads + head) * dim
        query = tl.load(r + place + row, mask=row < dim, other=0.0).to(tl.float32)
        key = tl.load(k + place + row, mask=row < dim, other=0.0).to(tl.float32)
        speed = tl.load(w + place + row, mask=row < dim, other=0.0).to(tl.float32)
        value = tl.load(v + place + column, mask=column < dim, other=0.0).to(tl.float32)
        product = key[:, None] * value[None, :]
        seen = state + bonus[:, None] * product
        result = tl.sum(query[:, None] * seen, axis=0)
        tl.store(y + place + column, result, mask=column < dim)
        keep = tl.exp(-tl.exp(tl.minimum(speed, 8.0)))
        state = keep[:, None] * state + product
    tl.store(last + corner, state, mask=inside)


def wkv6(r, k, v, w, u, first, y, last, *, batch, seq, heads, dim):
    """Write y [batch, seq, heads, dim] and the last states."""
    wkv6_kernel[(batch * heads, triton.cdiv(dim, 32))](
        r, k, v, w, u, first, y, last, seq, heads, dim,
        BLOCK_K=triton.next_power_of_2(dim), BLOCK_V=32, num_warps=4,
    )  # fmt: skip
