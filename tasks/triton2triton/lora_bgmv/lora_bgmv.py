"""Low-rank adapters in two kernels: a token's inner sums, then 64 of its columns a program."""

import torch
import triton
import triton.language as tl


@triton.jit
def down_kernel(x, down, adapter, inner, k, rank, BLOCK_R: tl.constexpr, BLOCK_K: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    own = tl.load(adapter + token).to(tl.int64)
    line = tl.arange(0, BLOCK_R)
    total = tl.zeros((BLOCK_R, BLOCK_K), dtype=tl.float32)
    if own >= 0:
        for start in range(0, k, BLOCK_K):
            col = start + tl.arange(0, BLOCK_K)
            value = tl.load(x + token * k + col, mask=col < k, other=0.0).to(tl.float32)
            inside = (line < rank)[:, None] & (col < k)[None, :]
            place = (own * rank + line)[:, None] * k + col[None, :]
            weight = tl.load(down + place, mask=inside, other=0.0).to(tl.float32)
            total += weight * value[None, :]
    tl.store(inner + token * rank + line, tl.sum(total, axis=1), mask=line < rank)


@triton.jit
def up_kernel(
    inner, up, adapter, base, y, scale, n, rank, BLOCK_R: tl.constexpr, BLOCK_N: tl.constexpr
):
    token = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    line = tl.arange(0, BLOCK_R)
    own = tl.load(adapter + token).to(tl.int64)
    result = tl.load(base + token * n + col, mask=col < n, other=0.0).to(tl.float32)
    if own >= 0:
        value = tl.load(inner + token * rank + line, mask=line < rank, other=0.0)
        inside = (col < n)[:, None] & (line < rank)[None, :]
        place = (own * n + col)[:, None] * rank + line[None, :]
        weight = tl.load(up + place, mask=inside, other=0.0).to(tl.float32)
        result += scale * tl.sum(weight * value[None, :], axis=1)
    tl.store(y + token * n + col, result, mask=col < n)


def lora_bgmv(x, down, up, adapter, base, y, *, scale, tokens, k, n, rank, adapters):
    """Write base plus each token's adapter into y [tokens, n]."""
    inner = torch.empty((tokens, rank), dtype=torch.float32, device=x.device)
    lines = triton.next_power_of_2(rank)
    down_kernel[(tokens,)](x, down, adapter, inner, k, rank, BLOCK_R=lines, BLOCK_K=64)
    up_kernel[(tokens, triton.cdiv(n, 64))](
        inner, up, adapter, base, y, scale, n, rank, BLOCK_R=lines, BLOCK_N=64
    )
