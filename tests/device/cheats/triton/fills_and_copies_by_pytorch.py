# Has PyTorch allocate, fill, copy and lay out, and convert a scalar; the arithmetic is in a kernel.
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
def scaled(x, scale, zero, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n) * tl.load(scale).to(tl.float32) + tl.load(zero)
    tl.store(y + at, value, mask=at < n)


def doubling(x, y, *, n):
    scale = torch.full((1,), 2.0, device=x.device).to(torch.bfloat16)
    zero = torch.zeros(1000, device=x.device).fill_(0.0)
    strided = torch.empty((2, n), device=x.device).t()
    strided[:, 1].copy_(x)
    same = strided.t()[1].clone()
    spread = same.view(1, n).expand(2, n).contiguous()
    scaled[(triton.cdiv(n, 1024),)](spread, scale, zero, y, n, BLOCK=1024)
