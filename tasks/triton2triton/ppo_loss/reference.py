"""Oracle of the ppo_loss task: terms of all tokens, and gradients by PyTorch's clamps."""

import torch


def inputs(config, generator):
    """Draw answers of all lengths, log-probabilities of three models, and advantages.

    Most tokens are nearly certain. The models drift apart by row, so that ratios are clipped in
    some rows and hardly in others. Log-probabilities lie on a grid of 1 / 1024, so that no ratio
    is within a rounding of a clip. Some tokens are nearly impossible under the
    reference model, which is beyond the limit. Prompts, padding and a tenth of the
    tokens do not count; some rows have no token.
    """
    rows, seq = config["rows"], config["seq"]
    surprise = torch.empty(rows, seq).exponential_(generator=generator)
    old = -3.0 * surprise * torch.rand(rows, seq, generator=generator) ** 3
    drift = 0.02 + 0.4 * torch.rand(rows, 1, generator=generator) ** 2
    logp = old + drift * torch.randn(rows, seq, generator=generator)
    ref = logp + 2.0 * drift * torch.randn(rows, seq, generator=generator)
    strange = torch.rand(rows, seq, generator=generator) < 0.01
    ref = torch.where(strange, logp - 21.0 - 9.0 * torch.rand(rows, 1, generator=generator), ref)
    begin = (0.3 * seq * torch.rand(rows, 1, generator=generator)).long()
    length = (seq * torch.rand(rows, 1, generator=generator)).long() + 1
    length = length.masked_fill(torch.rand(rows, 1, generator=generator) < 0.05, 0)
    length[[0, -1]] = seq
    place = torch.arange(seq)
    counts = (place >= begin) & (place < begin + length)
    counts &= torch.rand(rows, seq, generator=generator) < 0.9
    counts[[0, -1], begin[[0, -1], 0]] = True
    advantage = torch.randn(rows, generator=generator)
    grid = [(1024.0 * value).round() / 1024.0 for value in (logp, old, ref)]
    return {
        "logp": grid[0],
        "old": grid[1],
        "ref": grid[2],
        "mask": counts.to(torch.uint8),
        "advantage": torch.where(advantage < 0, advantage - 0.2, advantage + 0.2),
    }


def reference(logp, old, ref, mask, advantage, low, high, beta, **_):
    """Return loss [rows], dlogp [rows, seq] and used [rows].

    Whether a ratio has a slope is not asked of the two products: where nothing is clipped they are
    equal, but not when the judge moves each step in float32 to find how far rounding goes.
    """
    counts = mask > 0
    used = counts.sum(dim=-1)
    share = counts / used.clamp_min(1)[:, None]
    step, away = logp - old, ref - logp
    ratio, grown = torch.exp(step.clamp(-20, 20)), torch.exp(away.clamp(-20, 20))
    gain = advantage[:, None]
    clipped = ratio.clamp(1 - low, 1 + high) * gain
    token = beta * (grown - away.clamp(-20, 20) - 1) - torch.minimum(ratio * gain, clipped)
    stays = ((ratio > 1 + high) & (gain > 0)) | ((ratio < 1 - low) & (gain < 0))
    follows = ~stays & (step.abs() <= 20)
    slope = -(ratio * gain).masked_fill(~follows, 0)
    slope = slope + (beta * (1 - grown)).masked_fill(away.abs() > 20, 0)
    return {
        "loss": (token * share).sum(dim=-1),
        "dlogp": slope * share,
        "used": used.to(torch.int32),
    }
