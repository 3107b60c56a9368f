"""A step of Adafactor: sums of rows, sums of columns, the size of the update, and the update."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(grad, row, row_new, beta, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        j = start + tl.arange(0, BLOCK)
        value = tl.load(grad + i * cols + j, mask=j < cols, other=0.0).to(tl.float32)
        total += tl.where(j < cols, value * value + 1e-30, 0.0)
    old = tl.maximum(tl.load(row + i), 0.0)
    tl.store(row_new + i, beta * old + (1.0 - beta) * (tl.sum(total, axis=0) / cols))


@triton.jit
def column_kernel(
    grad, col, col_new, beta, rows, cols, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr
):
    j = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    total = tl.zeros((BLOCK_R, BLOCK_C), dtype=tl.float32)
    for start in range(0, rows, BLOCK_R):
        i = (start + tl.arange(0, BLOCK_R)).to(tl.int64)
        inside = (i < rows)[:, None] & (j < cols)[None, :]
        place = i[:, None] * cols + j[None, :]
        value = tl.load(grad + place, mask=inside, other=0.0).to(tl.float32)
        total += tl.where(inside, value * value + 1e-30, 0.0)
    old = tl.maximum(tl.load(col + j, mask=j < cols, other=0.0), 0.0)
    mean = tl.sum(total, axis=0) / rows
    tl.store(col_new + j, beta * old + (1.0 - beta) * mean, mask=j < cols)


@triton.jit
def mean_kernel(values, mean, count, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, count, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(values + i, mask=i < count, other=0.0)
    tl.store(mean, tl.sum(total, axis=0) / count)


@triton.jit
def size_kernel(grad, row_new, col_new, mean, size, cols, BLOCK: tl.constexpr):
    """The mean square of the update in each row."""
    i = tl.program_id(0).to(tl.int64)
    of_row = tl.load(row_new + i) / tl.load(mean)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        j = start + tl.arange(0, BLOCK)
        value = tl.load(grad + i * cols + j, mask=j < cols, other=0.0).to(tl.float32)
        spread = of_row * tl.load(col_new + j, mask=j < cols, other=1.0)
        update = value / tl.sqrt(spread)
        total += update * update
    tl.store(size + i, tl.sum(total, axis=0) / cols)


@triton.jit
def update_kernel(
    grad, master, row_new, col_new, mean, square, param_new, master_new,
    lr, limit, decay, cols, BLOCK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64)
    of_row = tl.load(row_new + i) / tl.load(mean)
    shrink = tl.maximum(tl.sqrt(tl.load(square)) / limit, 1.0)
    for start in range(0, cols, BLOCK):
        j = start + tl.arange(0, BLOCK)
        inside = j < cols
        place = i * cols + j
        value = tl.load(grad + place, mask=inside, other=0.0).to(tl.float32)
        spread = of_row * tl.load(col_new + j, mask=inside, other=1.0)
        update = value / tl.sqrt(spread) / shrink
        old = tl.load(master + place, mask=inside, other=0.0)
        new = old * (1.0 - lr * decay) - lr * update
        tl.store(master_new + place, new, mask=inside)
        tl.store(param_new + place, new, mask=inside)


def adafactor(
    grad, master, row, col, param_new, master_new, row_new, col_new,
    *, lr, beta, limit, decay, rows, cols,
):  # fmt: skip
    """Write the parameters and the moments after one step."""
    size = torch.empty(rows, dtype=torch.float32, device=grad.device)
    mean = torch.empty(1, dtype=torch.float32, device=grad.device)
    square = torch.empty(1, dtype=torch.float32, device=grad.device)
    block = min(1024, triton.next_power_of_2(cols))
    row_kernel[(rows,)](grad, row, row_new, beta, cols, BLOCK=block)
    column_kernel[(triton.cdiv(cols, 64),)](
        grad, col, col_new, beta, rows, cols, BLOCK_R=32, BLOCK_C=64
    )
    mean_kernel[(1,)](row_new, mean, rows, BLOCK=1024)
    size_kernel[(rows,)](grad, row_new, col_new, mean, size, cols, BLOCK=block)
    mean_kernel[(1,)](size, square, rows, BLOCK=1024)
    update_kernel[(rows,)](
        grad, master, row_new, col_new, mean, square, param_new, master_new,
        lr, limit, decay, cols, BLOCK=block,
    )  # fmt: skip
