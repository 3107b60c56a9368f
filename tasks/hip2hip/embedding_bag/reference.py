"""Oracle of the embedding_bag task: weighted rows added where their bags are."""

import torch


def inputs(config, generator):
    """Draw a table, ids that are popular or rare as users' items are, weights, and bags' lengths.

    An id's rank is that of Zipf's law, more or less; which id has which rank is drawn. About 1 bag
    in 20 is empty.
    """
    vocab, cols, count, bags = (config[name] for name in ("vocab", "cols", "count", "bags"))
    table = torch.randn(vocab, cols, generator=generator)
    rank = (vocab + 1.0) ** torch.rand(count, generator=generator, dtype=torch.float64) - 1.0
    names = torch.randperm(vocab, generator=generator)
    share = torch.rand(bags, generator=generator, dtype=torch.float64)
    share *= torch.rand(bags, generator=generator) > 0.05
    share[-1] += 1e-6
    ends = (share.cumsum(0) / share.sum() * count).round().long().clamp(0, count)
    ends[-1] = count
    return {
        "table": table.to(config["dtype"]),
        "id": names[rank.long().clamp(0, vocab - 1)],
        "weight": 0.2 + torch.rand(count, generator=generator),
        "offset": torch.cat((torch.zeros(1, dtype=torch.int64), ends)),
    }


def reference(table, id, weight, offset, bags, **_):  # noqa: A002
    """Return y [bags, cols]."""
    place = torch.arange(len(id), device=id.device)
    bag = torch.searchsorted(offset[1:].contiguous(), place, right=True)
    y = table.new_zeros(bags, table.shape[1])
    return {"y": y.index_add_(0, bag, table[id] * weight[:, None])}
