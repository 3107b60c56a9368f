"""Oracle of the unique_counts task: PyTorch's unique_consecutive."""

import torch


def inputs(config, generator):
    """Draw sorted keys that recur as often as Zipf's law says, more or less.

    Neighbouring values are 1 apart or many, and some differ only in their upper 32 bits. The first
    one is 0 now and then.
    """
    n, distinct = config["n"], config["distinct"]
    rank = (distinct + 1.0) ** torch.rand(n - distinct, generator=generator, dtype=torch.float64)
    name = torch.randperm(distinct, generator=generator)
    more = name[(rank - 1.0).long().clamp(0, distinct - 1)]
    run = torch.cat((torch.arange(distinct), more)).sort().values
    apart = torch.randint(1, 50, (distinct,), generator=generator)
    chance = torch.rand(distinct, generator=generator)
    apart[chance < 0.3] = 1
    apart[chance > 0.95] = 1 << 32
    begin = torch.randint(-(1 << 62), 1 << 62, (1,), generator=generator)
    begin *= torch.rand(1, generator=generator) < 0.7
    return {"key": (begin + apart.cumsum(0) - apart[0])[run]}


def reference(key, **_):
    """Return value and count [distinct], and run [n]."""
    value, run, count = key.unique_consecutive(return_inverse=True, return_counts=True)
    return {"value": value, "count": count.to(torch.int32), "run": run.to(torch.int32)}
