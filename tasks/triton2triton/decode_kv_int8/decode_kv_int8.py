"""Decoding over an 8-bit cache: parts of 256 tokens on their own, and a kernel that joins them."""

import torch
import triton
import triton.language as tl

PART = 256


@triton.jit
def part_kernel(
    q, k, v, k_scale, v_scale, length, sums, peaks, totals, scale, kv_heads, group, seq, dim, parts,
    PART: tl.constexpr, BLOCK_G: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Sums of one part of a head: [batch * kv_heads, parts, group, dim], with their peaks."""
    head = tl.program_id(0).to(tl.int64)  # of all caches
    part = tl.program_id(1)
    member = tl.arange(0, BLOCK_G)
    column = tl.arange(0, BLOCK_D)
    inside = (member < group)[:, None] & (column < dim)[None, :]
    line = (head * group + member)[:, None] * dim + column[None, :]
    query = tl.load(q + line, mask=inside, other=0.0)
    peak = tl.full((BLOCK_G,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_G,), dtype=tl.float32)
    result = tl.zeros((BLOCK_G, BLOCK_D), dtype=tl.float32)
    end = tl.minimum(tl.load(length + head // kv_heads), (part + 1) * PART)
    for start in range(part * PART, end, BLOCK_T):
        token = start + tl.arange(0, BLOCK_T)
        known = token < end
        there = known[:, None] & (column < dim)[None, :]
        row = (head * seq + token)[:, None] * dim + column[None, :]
        key = tl.load(k + row, mask=there, other=0).to(query.dtype)
        value = tl.load(v + row, mask=there, other=0).to(query.dtype)
        of_key = tl.load(k_scale + head * seq + token, mask=known, other=0.0)
        of_value = tl.load(v_scale + head * seq + token, mask=known, other=0.0)
        score = tl.dot(query, tl.trans(key), input_precision="ieee") * scale * of_key[None, :]
        score = tl.where(known[None, :], score, float("-inf"))
        higher = tl.maximum(peak, tl.max(score, axis=1))
        weight = tl.exp(score - higher[:, None])
        shrink = tl.exp(peak - higher)
        total = total * shrink + tl.sum(weight, axis=1)
        weight *= of_value[None, :]
        result = result * shrink[:, None]
        result += tl.dot(weight.to(query.dtype), value, input_precision="ieee")
        peak = higher
    row = (head * parts + part) * group + member
    tl.store(peaks + row, peak, mask=member < group)
    tl.store(totals + row, total, mask=member < group)
    tl.store(sums + row[:, None] * dim + column[None, :], result, mask=inside)


@triton.jit
def join_kernel(sums, peaks, totals, y, group, dim, parts, BLOCK_D: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    member = tl.program_id(1)
    column = tl.arange(0, BLOCK_D)
    largest = float("-inf")
    for part in range(parts):
        largest = tl.maximum(largest, tl.load(peaks + (head * parts + part) * group + member))
    total = 0.0
    result = tl.zeros((BLOCK_D,), dtype=tl.float32)
    for part in range(parts):
        row = (head * parts + part) * group + member
        share = tl.exp(tl.load(peaks + row) - largest)
        total += share * tl.load(totals + row)
        result += share * tl.load(sums + row * dim + column, mask=column < dim, other=0.0)
    place = (head * group + member) * dim + column
    tl.store(y + place, result / total, mask=column < dim)


def decode_kv_int8(q, k, v, k_scale, v_scale, length, y, *, batch, kv_heads, group, seq, dim):
    """Write the attention of q [batch, kv_heads * group, dim] over the cache into y."""
    heads, parts = batch * kv_heads, triton.cdiv(seq, PART)
    sums = torch.empty((heads, parts, group, dim), dtype=torch.float32, device=q.device)
    peaks = torch.empty((heads, parts, group), dtype=torch.float32, device=q.device)
    totals = torch.empty((heads, parts, group), dtype=torch.float32, device=q.device)
    columns = triton.next_power_of_2(dim)
    part_kernel[(heads, parts)](
        q, k, v, k_scale, v_scale, length, sums, peaks, totals, dim**-0.5,
        kv_heads, group, seq, dim, parts,
        PART=PART, BLOCK_G=16, BLOCK_T=32, BLOCK_D=columns, num_stages=1,
    )  # fmt: skip
    join_kernel[(heads, group)](sums, peaks, totals, y, group, dim, parts, BLOCK_D=columns)
