# Works in two kernels, with a tensor between them.
# verdict: correctness PASS
import torch
import triton
import triton.language as tl


@triton.jit
def copied(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)


def copy(x, y, n):
    copied[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)


@triton.jit
def added(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(y + at, mask=at < n) + tl.load(x + at, mask=at < n), mask=at < n)


def doubling(x, y, *, n):
    between = torch.empty_like(x)
    copy(x, between, n)
    copy(between, y, n)
    added[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
