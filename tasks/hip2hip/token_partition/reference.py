"""Oracle of the token_partition task: places where the mask is set, and where it is not."""

import torch


def inputs(config, generator):
    """Draw hidden states, and tokens that are kept, of which each sequence has a share of its own.

    In one sequence of ten all are kept, in another one none.
    """
    batch, seq, cols = config["batch"], config["seq"], config["cols"]
    share = 0.1 + 0.8 * torch.rand(batch, 1, generator=generator)
    drawn = torch.rand(batch, 1, generator=generator)
    share = torch.where(drawn < 0.1, 0.0, torch.where(drawn > 0.9, 1.0, share))
    mask = torch.rand(batch, seq, generator=generator) < share
    size = 0.3 + torch.rand(batch, seq, 1, generator=generator)
    x = size * torch.randn(batch, seq, cols, generator=generator)
    return {"x": x.to(config["dtype"]), "mask": mask.to(torch.uint8)}


def reference(x, mask, batch, seq, cols, **_):
    """Return parted, place and begin."""
    flat = mask.flatten()
    place = torch.cat(((flat == 1).nonzero(), (flat == 0).nonzero()))[:, 0]
    begin = torch.zeros(batch + 1, dtype=torch.int32, device=x.device)
    begin[1:] = mask.sum(dim=1).cumsum(0)
    parted = x.reshape(batch * seq, cols)[place]
    return {"parted": parted, "place": place.to(torch.int32), "begin": begin}
