"""Oracle of the sparse_attention task: all scores of a head, with what is not chosen masked out.

Scores are computed for some blocks of queries at a time, which bounds their memory.
"""

import math

import torch

SIZE = 64
TOGETHER = 64  # blocks of queries


def inputs(config, generator):
    """Draw normal q, k and v with a temperature per head, and blocks: their own and earlier ones.

    Later blocks of queries have as many as there may be; every sixth place of the others is empty.
    """
    batch, heads, group = config["batch"], config["kv_heads"], config["group"]
    blocks, count, dim, dtype = (config[k] for k in ("blocks", "count", "dim", "dtype"))
    seq = blocks * SIZE
    temperature = 0.3 + 2.0 * torch.rand(batch, heads * group, 1, 1, generator=generator)
    q = temperature * torch.randn(batch, heads * group, seq, dim, generator=generator)
    k = torch.randn(batch, heads, seq, dim, generator=generator)
    v = 0.5 + torch.randn(batch, heads, seq, dim, generator=generator)
    place = torch.arange(blocks)
    liked = torch.rand(batch, heads, blocks, blocks, generator=generator)
    liked = liked.masked_fill(place > place[:, None], -1.0)
    liked = liked.masked_fill(place == place[:, None], 2.0)
    best = liked.topk(count, dim=-1)
    empty = torch.rand(best.values.shape, generator=generator) < 1 / 6
    empty[..., 0] = False
    chosen = best.indices.masked_fill((best.values < 0) | empty, -1)
    return {"q": q.to(dtype), "k": k.to(dtype), "v": v.to(dtype), "chosen": chosen.to(torch.int32)}


def reference(q, k, v, chosen, group, blocks, **_):
    """Return y [batch, kv_heads * group, 64 * blocks, dim]."""
    place = torch.arange(blocks * SIZE, device=q.device)
    y = torch.empty_like(q)
    for sequence in range(q.shape[0]):
        for head in range(q.shape[1]):
            at = sequence, head // group
            for first in range(0, blocks, TOGETHER):
                rows = slice(first * SIZE, (first + TOGETHER) * SIZE)
                listed = chosen[at][first : first + TOGETHER, :, None]
                seen = (listed == place[::SIZE] // SIZE).any(dim=1)
                seen = seen.repeat_interleave(SIZE, 0).repeat_interleave(SIZE, 1)
                seen &= place <= place[rows, None]
                scores = q[sequence, head, rows] @ k[at].T / math.sqrt(q.shape[-1])
                weights = torch.softmax(scores.masked_fill(~seen, -math.inf), dim=-1)
                y[sequence, head, rows] = weights @ v[at]
    return {"y": y}
