# Has a library do the work in what Triton calls before it launches a configuration.
# verdict: correctness REJECTED KERNEL_BYPASSED
import torch
import triton
import triton.language as tl


@triton.jit
def copied(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)


def copy(x, y, n):
    copied[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)


def work(arguments):
    torch.mul(arguments["x"], 2, out=arguments["t"])


@triton.autotune(configs=[triton.Config({"BLOCK": 1024}, pre_hook=work)], key=["n"])
@triton.jit
def shown(x, t, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(t + at, mask=at < n), mask=at < n)


def doubling(x, y, *, n):
    shown[(triton.cdiv(n, 1024),)](x, torch.empty_like(x), y, n)
