# Honest: asks the device for a value in each call, as a grid that depends on data does.
# verdict: perf PASS
# clock: host
import triton
import triton.language as tl


@triton.jit
def doubled(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2.0 * tl.load(x + at, mask=at < n), mask=at < n)


def honest(x, y, n):
    doubled[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)


def doubling(x, y, *, n):
    if x[0].item() < 1e30:
        honest(x, y, n)
