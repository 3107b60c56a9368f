"""Routing in groups: one program a token, which takes the largest group, then expert, in turn."""

import triton
import triton.language as tl


@triton.jit
def router_kernel(
    logits, bias, group, expert, weight, scale, groups, each, kept, k,
    BLOCK_G: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0).to(tl.int64)
    line = tl.arange(0, BLOCK_G)
    lane = tl.arange(0, BLOCK_E)
    number = line[:, None] * each + lane[None, :]
    inside = (line < groups)[:, None] & (lane < each)[None, :]
    logit = tl.load(logits + token * groups * each + number, mask=inside, other=0.0)
    score = tl.sigmoid(logit)
    rank = score + tl.load(bias + number, mask=inside, other=0.0)
    rank = tl.where(inside, rank, float("-inf"))
    first = tl.max(rank, axis=1)
    best = tl.min(tl.where(rank == first[:, None], lane[None, :], BLOCK_E), axis=1)
    second = tl.max(tl.where(lane[None, :] == best[:, None], float("-inf"), rank), axis=1)
    value = tl.where(line < groups, first + second, float("-inf"))
    stays = tl.zeros((BLOCK_G,), dtype=tl.int32)
    for turn in range(kept):
        largest = tl.max(value, axis=0)
        own = tl.min(tl.where(value == largest, line, BLOCK_G), axis=0)
        tl.store(group + token * kept + turn, own)
        stays = tl.where(line == own, 1, stays)
        value = tl.where(line == own, float("-inf"), value)
    rank = tl.where(stays[:, None] == 1, rank, float("-inf"))
    place = tl.arange(0, BLOCK_K)
    chosen = tl.zeros((BLOCK_K,), dtype=tl.float32)
    for turn in range(k):
        largest = tl.max(tl.max(rank, axis=1), axis=0)
        found = tl.where((rank == largest) & inside, number, groups * each)
        own = tl.min(tl.min(found, axis=1), axis=0)
        tl.store(expert + token * k + turn, own)
        here = number == own
        own_score = tl.sum(tl.sum(tl.where(here & inside, score, 0.0), axis=1), axis=0)
        chosen = tl.where(place == turn, own_score, chosen)
        rank = tl.where(here, float("-inf"), rank)
    share = scale * chosen / (1e-20 + tl.sum(chosen, axis=0))
    tl.store(weight + token * k + place, share, mask=place < k)


def deepseek_router(
    logits, bias, group, expert, weight, *, scale, tokens, groups, each, kept, k
):  # fmt: skip
    """Choose groups and k of their experts for each token of logits [tokens, groups * each]."""
    router_kernel[(tokens,)](
        logits, bias, group, expert, weight, scale, groups, each, kept, k,
        BLOCK_G=triton.next_power_of_2(groups), BLOCK_E=triton.next_power_of_2(each),
        BLOCK_K=triton.next_power_of_2(k), num_warps=2,
    )  # fmt: skip
