"""Oracle of the speculative_verify task: all comparisons, and the first that fails."""

import torch


def inputs(config, generator):
    """Draw peaked targets, drafts that resemble them, tokens from the drafts, and numbers.

    Drafts are better at some sequences, so that none, some or all of their tokens pass.
    """
    batch, depth, vocab = config["batch"], config["depth"], config["vocab"]
    logits = 2.5 * torch.randn(batch, depth + 1, vocab, generator=generator)
    apart = 2.0 * torch.rand(batch, 1, 1, generator=generator) ** 2
    changed = logits[:, :depth] + apart * torch.randn(batch, depth, vocab, generator=generator)
    noise = torch.empty(batch, depth, vocab).exponential_(generator=generator)
    return {
        "token": (changed - noise.log()).argmax(dim=-1).to(torch.int32),
        "draft": torch.softmax(changed, dim=-1),
        "target": torch.softmax(logits, dim=-1),
        "uniform": torch.rand(batch, depth, generator=generator),
    }


def reference(token, draft, target, uniform, depth, **_):
    """Return accepted [batch] and after [batch, vocab]."""
    place = token.long()[..., None]
    known = target[:, :depth].gather(-1, place), draft.gather(-1, place)
    passes = uniform * known[1][..., 0] < known[0][..., 0]
    accepted = passes.long().cumprod(dim=1).sum(dim=1)
    row = torch.arange(len(accepted), device=token.device)
    likely = target[row, accepted]
    rest = (likely - draft[row, accepted.clamp_max(depth - 1)]).clamp_min(0)
    total = rest.sum(dim=-1, keepdim=True)
    whole = (accepted == depth)[:, None] | (total == 0)
    return {
        "accepted": accepted.to(torch.int32),
        "after": torch.where(whole, likely, rest / total),
    }
