"""Oracle of the cross_attention_align task: the whole weights of each head, and their mean."""

import torch


def inputs(config, generator):
    """Draw frames that change slowly, and steps that follow them in some heads, and not in others.

    In a head that follows, step i looks for a frame near its share of the length. One
    sequence has hardly any padding.
    """
    batch, heads, steps = config["batch"], config["heads"], config["steps"]
    frames, dim, dtype = config["frames"], config["dim"], config["dtype"]
    length = torch.randint((frames + 3) // 4, frames + 1, (batch,), generator=generator)
    length = torch.where(torch.rand(batch, generator=generator) < 0.2, 1 + length // 16, length)
    nearly = frames - torch.randint(1 + frames // 8, (1,), generator=generator)
    length[torch.randint(batch, (1,), generator=generator)] = nearly
    k = torch.randn(batch, heads, frames, dim, generator=generator)
    v = torch.randn(batch, heads, frames, dim, generator=generator)
    v += torch.randn(batch, heads, 1, dim, generator=generator)
    share = (torch.arange(steps) + torch.rand(batch, heads, steps, generator=generator)) / steps
    wanted = (share * length[:, None, None]).long().clamp_max(frames - 1)
    found = k.gather(2, wanted[..., None].expand(-1, -1, -1, dim))
    follows = torch.rand(batch, heads, 1, 1, generator=generator) * 8.0 / dim**0.5
    other = torch.randn(batch, heads, steps, dim, generator=generator)
    q = follows * found + (0.3 + torch.rand(batch, heads, 1, 1, generator=generator)) * other
    return {
        "q": q.to(dtype),
        "k": k.to(dtype),
        "v": v.to(dtype),
        "length": length.to(torch.int32),
    }


def reference(q, k, v, length, frames, dim, **_):
    """Return y [batch, heads, steps, dim] and align [batch, steps, frames]."""
    y, align = torch.empty_like(q), q.new_zeros(q.shape[0], q.shape[2], frames)
    for sequence, count in enumerate(length.tolist()):
        for head in range(q.shape[1]):
            scores = q[sequence, head] @ k[sequence, head, :count].T / dim**0.5
            weights = torch.softmax(scores, dim=-1)
            y[sequence, head] = weights @ v[sequence, head, :count]
            align[sequence, :, :count] += weights / q.shape[1]
    return {"y": y, "align": align}
