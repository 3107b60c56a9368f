# Allocates, fills, views, clones and copies with PyTorch, and computes with a kernel.
# passes: correctness
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_rows(x, y, scale, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    values = tl.load(x + row * cols + c, mask=c < cols, other=float("-inf")) * scale
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(y + row * cols + c, powers / tl.sum(powers, 0), mask=c < cols)


def honest(x, y, scale, rows, cols):
    softmax_rows[(rows,)](x, y, scale, cols, BLOCK=triton.next_power_of_2(cols))


def softmax(x, y, *, scale, rows, cols):
    padded = torch.zeros((rows, cols + 8), dtype=y.dtype, device=y.device)
    padded[:, :cols].copy_(x)
    packed = padded[:, :cols].contiguous().view(rows, cols)
    result = torch.full_like(y, -1.0)
    result.zero_()
    honest(packed.clone(), result, scale, rows, cols)
    across = torch.empty((cols, rows), dtype=y.dtype, device=y.device)
    across.copy_(result.t())
    y[: rows // 2] = result[: rows // 2]
    y[rows // 2 :] = across.t()[rows // 2 :].to(y.dtype)
