"""A step of AdamW in one pass over all that it reads and writes."""

import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def adamw_kernel(
    grad, master, m, v, factor, param_new, master_new, m_new, v_new,
    lr, beta1, beta2, eps, decay, c1, c2, n, BLOCK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    gradient = tl.load(grad + i, mask=inside, other=0.0, eviction_policy="evict_first")
    first = tl.load(m + i, mask=inside, other=0.0, eviction_policy="evict_first")
    second = tl.load(v + i, mask=inside, other=0.0, eviction_policy="evict_first")
    old = tl.load(master + i, mask=inside, other=0.0, eviction_policy="evict_first")
    gradient = gradient.to(tl.float32) * tl.load(factor)
    first = beta1 * first + (1.0 - beta1) * gradient
    second = beta2 * second + (1.0 - beta2) * gradient * gradient
    root = tl.sqrt(tl.maximum(second, 0.0) / c2)
    new = old * (1.0 - lr * decay) - lr * (first / c1) / (root + eps)
    tl.store(m_new + i, first, mask=inside)
    tl.store(v_new + i, second, mask=inside)
    tl.store(master_new + i, new, mask=inside)
    tl.store(param_new + i, new, mask=inside)


def adamw(
    grad, master, m, v, factor, param_new, master_new, m_new, v_new,
    *, lr, beta1, beta2, eps, decay, c1, c2, n,
):  # fmt: skip
    """Write the state after one step."""
    adamw_kernel[(triton.cdiv(n, BLOCK),)](
        grad, master, m, v, factor, param_new, master_new, m_new, v_new,
        lr, beta1, beta2, eps, decay, c1, c2, n, BLOCK=BLOCK, num_warps=4,
    )  # fmt: skip
