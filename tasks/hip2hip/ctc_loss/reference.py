"""Oracle of the ctc_loss task: PyTorch's own loss in float64, of a softmax's logarithm."""

import torch
from torch.nn.functional import ctc_loss


def inputs(config, generator):
    """Draw logits that know the labels a little, labels with repetitions, and lengths that differ.

    The blank is likely everywhere, as in a trained model; a third of the labels repeats the one
    before. The last utterance has all frames and all labels.
    """
    time, batch, classes = config["time"], config["batch"], config["classes"]
    length = config["length"]
    logits = 1.5 * torch.randn(time, batch, classes, generator=generator)
    logits[..., 0] += 2.0
    label = torch.randint(1, classes, (batch, length), generator=generator)
    again = torch.rand(batch, length, generator=generator) < 1 / 3
    again[:, 0] = False
    label = torch.where(again, label.roll(1, dims=1), label)
    place = (torch.arange(length) * time) // length
    seen = torch.nn.functional.one_hot(label.T, classes).float()
    logits[place] += 3.0 * seen
    labels = 1 + (torch.rand(batch, generator=generator) * length).long()
    least = 2 * labels
    frames = least + (torch.rand(batch, generator=generator) * (time - least + 1)).long()
    frames[-1], labels[-1] = time, length
    return {
        "logits": logits.to(config["dtype"]),
        "label": label.to(torch.int32),
        "frames": frames.to(torch.int32),
        "labels": labels.to(torch.int32),
    }


def reference(logits, label, frames, labels, **_):
    """Return loss [batch]."""
    known = logits - logits.logsumexp(dim=-1, keepdim=True)
    loss = ctc_loss(known, label.long(), frames.long(), labels.long(), reduction="none")
    return {"loss": loss}
