"""A step of AdamW in two kernels: the moments, then the parameters from them."""

import triton
import triton.language as tl


@triton.jit
def moments_kernel(grad, m, v, factor, m_new, v_new, beta1, beta2, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    gradient = tl.load(grad + i, mask=inside, other=0.0).to(tl.float32) * tl.load(factor)
    first = tl.load(m + i, mask=inside, other=0.0)
    second = tl.load(v + i, mask=inside, other=0.0)
    tl.store(m_new + i, beta1 * first + (1.0 - beta1) * gradient, mask=inside)
    tl.store(v_new + i, beta2 * second + (1.0 - beta2) * gradient * gradient, mask=inside)


@triton.jit
def parameters_kernel(
    master, m_new, v_new, param_new, master_new, lr, eps, decay, c1, c2, n, BLOCK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    first = tl.load(m_new + i, mask=inside, other=0.0) / c1
    second = tl.load(v_new + i, mask=inside, other=0.0) / c2
    old = tl.load(master + i, mask=inside, other=0.0)
    second = tl.maximum(second, 0.0)
    new = old * (1.0 - lr * decay) - lr * first / (tl.sqrt(second) + eps)
    tl.store(master_new + i, new, mask=inside)
    tl.store(param_new + i, new, mask=inside)


def adamw(
    grad, master, m, v, factor, param_new, master_new, m_new, v_new,
    *, lr, beta1, beta2, eps, decay, c1, c2, n,
):  # fmt: skip
    """Write the state after one step."""
    grid = (triton.cdiv(n, 1024),)
    moments_kernel[grid](grad, m, v, factor, m_new, v_new, beta1, beta2, n, BLOCK=1024, num_warps=4)
    parameters_kernel[grid](
        master, m_new, v_new, param_new, master_new, lr, eps, decay, c1, c2, n,
        BLOCK=1024, num_warps=4,
    )  # fmt: skip
