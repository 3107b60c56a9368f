"""Oracle of the clip_loss task: all cosines, some rows a time, and PyTorch's logsumexp."""

import torch

PART = 1 << 24
"""Cosines that are in memory at once."""


def inputs(config, generator):
    """Draw embeddings of different lengths: pairs resemble each other more or less, and all a bit.

    The scale is that of a model in training. In some pairs both have nothing in common.
    """
    pairs, dim, dtype = config["pairs"], config["dim"], config["dtype"]
    common = 0.7 * torch.randn(dim, generator=generator)
    topic = torch.randn(1 + pairs // 8, dim, generator=generator)
    own = torch.randint(0, len(topic), (pairs,), generator=generator)
    alike = (
        1.2
        * torch.rand(pairs, 1, generator=generator)
        * torch.randn(pairs, dim, generator=generator)
    )

    def embedded():
        length = 0.3 + 3.0 * torch.rand(pairs, 1, generator=generator)
        noise = torch.randn(pairs, dim, generator=generator)
        return (length * (common + 0.5 * topic[own] + alike + noise)).to(dtype)

    scale = 14.0 + 50.0 * torch.rand(1, generator=generator)
    return {"image": embedded(), "text": embedded(), "scale": scale}


def reference(image, text, scale, **_):
    """Return of_image, of_text and own [pairs]."""
    image = image / image.norm(dim=1, keepdim=True).clamp_min(1e-12)
    text = text / text.norm(dim=1, keepdim=True).clamp_min(1e-12)

    def summed(these, those):
        parts = these.split(max(1, PART // len(those)))
        return torch.cat([torch.logsumexp(scale * (part @ those.T), dim=1) for part in parts])

    of_image, of_text = summed(image, text), summed(text, image)
    own = scale * (image * text).sum(dim=1)
    return {"of_image": of_image, "of_text": of_text, "own": own}
