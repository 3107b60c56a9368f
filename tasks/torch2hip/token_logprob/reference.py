"""Oracle and PyTorch baseline of the token_logprob task."""

import torch


def inputs(config, generator):
    """Draw logits of rows that are sure and unsure, and tokens as such a model draws them."""
    rows, vocab = config["rows"], config["vocab"]
    spread = 1.0 + 2.0 * torch.rand(rows, 1, generator=generator)
    logits = spread * torch.randn(rows, vocab, generator=generator)
    logits = logits + 3.0 * torch.randn(rows, 1, generator=generator)
    noise = torch.empty(rows, vocab).exponential_(generator=generator)
    token = (logits - noise.log()).argmax(dim=-1)
    return {"logits": logits.to(config["dtype"]), "token": token}


def reference(logits, token, temperature, **_):
    """Return logprob and entropy [rows]."""
    cold = logits / temperature
    total = torch.logsumexp(cold, dim=-1)
    chosen = cold.gather(-1, token[:, None])[:, 0]
    missing = total[:, None] - cold
    return {"logprob": chosen - total, "entropy": (missing * (-missing).exp()).sum(dim=-1)}


def baseline(logits, token, temperature, **_):
    """PyTorch's logarithm of a softmax in float32, one element of it, and its entropy."""
    known = torch.log_softmax(logits.float() / temperature, dim=-1)
    entropy = -(known.exp() * known).sum(dim=-1)
    return {"logprob": known.gather(-1, token[:, None])[:, 0], "entropy": entropy}
