"""Routing: one program a token, which takes the largest logit k times and counts atomically."""

import triton
import triton.language as tl


@triton.jit
def moe_router_kernel(
    logits, expert, weight, count, experts, k, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr
):
    token = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    place = tl.arange(0, BLOCK_K)
    value = tl.load(logits + token * experts + lane, mask=lane < experts, other=float("-inf"))
    value = value.to(tl.float32)
    chosen = tl.full((BLOCK_K,), float("-inf"), dtype=tl.float32)
    for turn in range(k):
        largest = tl.max(value, axis=0)
        first = tl.min(tl.where(value == largest, lane, BLOCK), axis=0)
        tl.store(expert + token * k + turn, first)
        tl.atomic_add(count + first, 1)
        chosen = tl.where(place == turn, largest, chosen)
        value = tl.where(lane == first, float("-inf"), value)
    share = tl.exp(chosen - tl.max(chosen, axis=0))
    tl.store(weight + token * k + place, share / tl.sum(share, axis=0), mask=place < k)


def moe_router(logits, expert, weight, count, *, tokens, experts, k):
    """Choose k of the experts for each token."""
    count.zero_()
    moe_router_kernel[(tokens,)](
        logits, expert, weight, count, experts, k,
        BLOCK=triton.next_power_of_2(experts), BLOCK_K=triton.next_power_of_2(k), num_warps=1,
    )  # fmt: skip
