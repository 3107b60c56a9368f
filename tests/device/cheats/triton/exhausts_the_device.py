# Allocates until there is no more.
# verdict: correctness FAIL OUT_OF_MEMORY
import torch
import triton
import triton.language as tl


@triton.jit
def doubled(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2.0 * tl.load(x + at, mask=at < n), mask=at < n)


def honest(x, y, n):
    doubled[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)


def doubling(x, y, *, n):
    honest(x, y, n)
    kept = []
    while True:
        kept.append(torch.empty(1 << 30, dtype=torch.uint8, device=x.device))
