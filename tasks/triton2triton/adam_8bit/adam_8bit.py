"""A step of 8-bit AdamW in two kernels: moments in float32, then parameters and the new bytes."""

import torch
import triton
import triton.language as tl


@triton.jit
def moments_kernel(
    grad, first, second, first_scale, second_scale, m_new, v_new, beta1, beta2, BLOCK: tl.constexpr
):
    block = tl.program_id(0).to(tl.int64)
    i = block * BLOCK + tl.arange(0, BLOCK)
    gradient = tl.load(grad + i).to(tl.float32)
    m = tl.load(first + i).to(tl.float32) / 127.0 * tl.load(first_scale + block)
    root = tl.load(second + i).to(tl.float32) / 255.0
    v = root * root * tl.maximum(tl.load(second_scale + block), 0.0)
    tl.store(m_new + i, beta1 * m + (1.0 - beta1) * gradient)
    tl.store(v_new + i, beta2 * v + (1.0 - beta2) * gradient * gradient)


@triton.jit
def parameters_kernel(
    master, m_new, v_new, master_new, first_new, second_new, first_scale_new, second_scale_new,
    lr, eps, decay, c1, c2, BLOCK: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0).to(tl.int64)
    i = block * BLOCK + tl.arange(0, BLOCK)
    m = tl.load(m_new + i)
    v = tl.load(v_new + i)
    old = tl.load(master + i)
    new = old * (1.0 - lr * decay) - lr * (m / c1) / (tl.sqrt(v / c2) + eps)
    tl.store(master_new + i, new)
    largest = tl.max(tl.abs(m), axis=0)
    highest = tl.max(v, axis=0)
    steps = tl.where(largest > 0.0, m / largest, 0.0) * 127.0
    tl.store(first_new + i, tl.floor(steps + 0.5).to(tl.int8))
    roots = tl.sqrt(tl.where(highest > 0.0, v / highest, 0.0)) * 255.0
    tl.store(second_new + i, tl.floor(roots + 0.5).to(tl.int32).to(tl.uint8))
    tl.store(first_scale_new + block, largest)
    tl.store(second_scale_new + block, highest)


def adam_8bit(
    grad, master, first, second, first_scale, second_scale,
    master_new, first_new, second_new, first_scale_new, second_scale_new,
    *, lr, beta1, beta2, eps, decay, c1, c2, blocks,
):  # fmt: skip
    """Write the parameters and their moments after one step."""
    m_new = torch.empty(blocks * 256, dtype=torch.float32, device=grad.device)
    v_new = torch.empty(blocks * 256, dtype=torch.float32, device=grad.device)
    moments_kernel[(blocks,)](
        grad, first, second, first_scale, second_scale, m_new, v_new, beta1, beta2,
        BLOCK=256, num_warps=2,
    )  # fmt: skip
    parameters_kernel[(blocks,)](
        master, m_new, v_new, master_new, first_new, second_new, first_scale_new, second_scale_new,
        lr, eps, decay, c1, c2, BLOCK=256, num_warps=2,
    )  # fmt: skip
