"""Fourier mixing as two products with cosines and sines, which are computed where they are needed.

The first kernel transforms rows into real and imaginary parts in float32, the second has the real
part of the transform of their columns.
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def hidden_kernel(
    x, real, imaginary, rows, hidden, factor, turn,
    BLOCK_R: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    row = (tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)).to(tl.int64)
    col = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    along = tl.zeros((BLOCK_R, BLOCK_H), dtype=tl.float32)
    across = tl.zeros((BLOCK_R, BLOCK_H), dtype=tl.float32)
    for start in range(0, hidden, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        inside = (row < rows)[:, None] & (k < hidden)[None, :]
        value = tl.load(x + row[:, None] * hidden + k[None, :], mask=inside, other=0.0)
        angle = (k[:, None] * col[None, :] % hidden).to(tl.float32) * turn
        along += tl.dot(value.to(tl.float32), tl.cos(angle), input_precision="ieee")
        across -= tl.dot(value.to(tl.float32), tl.sin(angle), input_precision="ieee")
    inside = (row < rows)[:, None] & (col < hidden)[None, :]
    place = row[:, None] * hidden + col[None, :]
    tl.store(real + place, along * factor, mask=inside)
    tl.store(imaginary + place, across * factor, mask=inside)


@triton.jit
def seq_kernel(
    real, imaginary, y, seq, hidden, factor, turn,
    BLOCK_S: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    first = tl.program_id(2).to(tl.int64) * seq * hidden
    step = tl.program_id(0) * BLOCK_S + tl.arange(0, BLOCK_S)
    col = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    total = tl.zeros((BLOCK_S, BLOCK_H), dtype=tl.float32)
    for start in range(0, seq, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        inside = (k < seq)[:, None] & (col < hidden)[None, :]
        place = first + k[:, None] * hidden + col[None, :]
        along = tl.load(real + place, mask=inside, other=0.0)
        across = tl.load(imaginary + place, mask=inside, other=0.0)
        angle = (step[:, None] * k[None, :] % seq).to(tl.float32) * turn
        total += tl.dot(tl.cos(angle), along, input_precision="ieee")
        total += tl.dot(tl.sin(angle), across, input_precision="ieee")
    inside = (step < seq)[:, None] & (col < hidden)[None, :]
    tl.store(y + first + step[:, None] * hidden + col[None, :], total * factor, mask=inside)


def fnet_mixing(x, y, *, batch, seq, hidden):
    """Write y [batch, seq, hidden]."""
    real = torch.empty((batch, seq, hidden), dtype=torch.float32, device=x.device)
    imaginary = torch.empty((batch, seq, hidden), dtype=torch.float32, device=x.device)
    rows, cols = batch * seq, triton.cdiv(hidden, 64)
    hidden_kernel[(triton.cdiv(rows, 32), cols)](
        x, real, imaginary, rows, hidden, hidden**-0.5, 2 * math.pi / hidden,
        BLOCK_R=32, BLOCK_H=64, BLOCK_K=32, num_warps=4,
    )  # fmt: skip
    seq_kernel[(triton.cdiv(seq, 32), cols, batch)](
        real, imaginary, y, seq, hidden, seq**-0.5, 2 * math.pi / seq,
        BLOCK_S=32, BLOCK_H=64, BLOCK_K=32, num_warps=4,
    )  # fmt: skip
