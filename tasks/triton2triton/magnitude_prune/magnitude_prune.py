"""Pruning by magnitude: four rounds that settle eight bits of the threshold each, then the mask.

A round counts how often each digit occurs among the elements whose higher bits are those found, and
one program then chooses the digit. state holds the bits that are found, and how many of the largest
are wanted among those that begin with them.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def count_kernel(weight, state, counts, n, shift, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    size = tl.abs(tl.load(weight + i, mask=i < n, other=0.0).to(tl.float32))
    bits = size.to(tl.int32, bitcast=True).to(tl.int64)
    found = tl.load(state)
    alike = (bits >> (shift + 8)) == (found >> (shift + 8))
    digit = ((bits >> shift) & 255).to(tl.int32)
    tl.atomic_add(counts + digit, 1, mask=(i < n) & alike)


@triton.jit
def choose_kernel(state, counts, shift):
    digit = tl.arange(0, 256)
    count = tl.load(counts + digit).to(tl.int64)
    found = tl.load(state)
    wanted = tl.load(state + 1)
    reaching = tl.sum(count, axis=0) - tl.cumsum(count, axis=0) + count
    chosen = tl.max(tl.where(reaching >= wanted, digit, 0), axis=0)
    above = tl.sum(tl.where(digit > chosen, count, 0), axis=0)
    tl.store(state, found + (chosen.to(tl.int64) << shift))
    tl.store(state + 1, wanted - above)


@triton.jit
def begin_kernel(keep, state):
    tl.store(state, tl.full((), 0, tl.int64))
    tl.store(state + 1, tl.load(keep).to(tl.int64))


@triton.jit
def prune_kernel(weight, state, pruned, threshold, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    least = tl.load(state).to(tl.int32).to(tl.float32, bitcast=True)
    value = tl.load(weight + i, mask=i < n, other=0.0)
    kept = tl.abs(value.to(tl.float32)) >= least
    tl.store(pruned + i, tl.where(kept, value, 0.0), mask=i < n)
    tl.store(threshold, least, mask=tl.program_id(0) == 0)


def magnitude_prune(weight, keep, pruned, threshold, *, n):
    """Write pruned [n] and threshold [1]."""
    state = torch.empty(2, dtype=torch.int64, device=weight.device)
    counts = torch.zeros((4, 256), dtype=torch.int32, device=weight.device)
    grid = (triton.cdiv(n, 1024),)
    begin_kernel[(1,)](keep, state, num_warps=1)
    for turn, shift in enumerate((24, 16, 8, 0)):
        count_kernel[grid](weight, state, counts[turn], n, shift, BLOCK=1024, num_warps=4)
        choose_kernel[(1,)](state, counts[turn], shift, num_warps=4)
    prune_kernel[grid](weight, state, pruned, threshold, n, BLOCK=1024, num_warps=4)
