"""Distinct keys in four kernels: runs that begin in each block, sums of these, places, lengths."""

import torch
import triton
import triton.language as tl


@triton.jit
def begins(key, i, n):
    """1 where a run begins, for the places i."""
    own = tl.load(key + i, mask=i < n, other=0)
    before = tl.load(key + i - 1, mask=(i > 0) & (i < n), other=0)
    return (((own != before) | (i == 0)) & (i < n)).to(tl.int32)


@triton.jit
def count_kernel(key, sums, n, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    i = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(sums + block, tl.sum(begins(key, i, n), axis=0))


@triton.jit
def scan_kernel(sums, blocks, BLOCK: tl.constexpr):
    before = 0
    for start in range(0, blocks, BLOCK):
        block = start + tl.arange(0, BLOCK)
        own = tl.load(sums + block, mask=block < blocks, other=0)
        tl.store(sums + block, before + tl.cumsum(own, axis=0) - own, mask=block < blocks)
        before += tl.sum(own, axis=0)


@triton.jit
def place_kernel(key, sums, value, first, run, n, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    i = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    begin = begins(key, i, n)
    place = tl.load(sums + block) + tl.cumsum(begin, axis=0) - 1
    tl.store(run + i, place, mask=i < n)
    tl.store(value + place, tl.load(key + i, mask=i < n, other=0), mask=begin > 0)
    tl.store(first + place, i.to(tl.int32), mask=begin > 0)


@triton.jit
def length_kernel(first, count, n, distinct, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    begin = tl.load(first + place, mask=place < distinct, other=0)
    end = tl.load(first + place + 1, mask=place + 1 < distinct, other=n)
    tl.store(count + place, end - begin, mask=place < distinct)


def unique_counts(key, value, count, run, *, n, distinct):
    """Write value and count [distinct], and run [n]."""
    blocks = triton.cdiv(n, 512)
    sums = torch.empty(blocks, dtype=torch.int32, device=key.device)
    first = torch.empty(distinct, dtype=torch.int32, device=key.device)
    count_kernel[(blocks,)](key, sums, n, BLOCK=512, num_warps=4)
    scan_kernel[(1,)](sums, blocks, BLOCK=1024, num_warps=4)
    place_kernel[(blocks,)](key, sums, value, first, run, n, BLOCK=512, num_warps=4)
    grid = (triton.cdiv(distinct, 512),)
    length_kernel[grid](first, count, n, distinct, BLOCK=512, num_warps=4)
