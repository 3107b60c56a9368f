# Never ends.
# verdict: correctness FAIL TIMEOUT
import triton
import triton.language as tl


@triton.jit
def doubled(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2.0 * tl.load(x + at, mask=at < n), mask=at < n)


def honest(x, y, n):
    doubled[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)


@triton.jit
def forever(y):
    value = tl.load(y, volatile=True)
    while value != 1.0:
        value = tl.load(y, volatile=True)


def doubling(x, y, *, n):
    forever[(1,)](y)
