# Has Triton choose between configurations, by clocks of its own.
# verdict: perf PASS
import triton
import triton.language as tl


@triton.jit
def doubled(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2.0 * tl.load(x + at, mask=at < n), mask=at < n)


def honest(x, y, n):
    doubled[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)


@triton.autotune(configs=[triton.Config({"BLOCK": b}) for b in (256, 1024)], key=["n"])
@triton.jit
def tuned(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2.0 * tl.load(x + at, mask=at < n), mask=at < n)


def doubling(x, y, *, n):
    tuned[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)
