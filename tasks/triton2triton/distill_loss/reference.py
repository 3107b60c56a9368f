"""Oracle of the distill_loss task: the cross-entropy of whole distributions, and its gradient."""

import torch


def inputs(config, generator):
    """Draw teachers that are sure and unsure, and students that have learned most of it.

    Logits have an offset a row, which no probability depends on.
    """
    rows, vocab, dtype = config["rows"], config["vocab"], config["dtype"]
    spread = 1.0 + 2.5 * torch.rand(rows, 1, generator=generator)
    teacher = spread * torch.randn(rows, vocab, generator=generator)
    favourite = torch.randint(0, vocab, (rows, 1), generator=generator)
    teacher.scatter_add_(1, favourite, 4.0 + 8.0 * torch.rand(rows, 1, generator=generator))
    student = 0.8 * teacher + torch.randn(rows, vocab, generator=generator)
    student = student + 3.0 * torch.randn(rows, 1, generator=generator)
    return {"student": student.to(dtype), "teacher": teacher.to(dtype)}


def reference(student, teacher, temperature, **_):
    """Return loss [rows] and dstudent [rows, vocab]."""
    p = torch.softmax(teacher / temperature, dim=-1)
    log_q = torch.log_softmax(student / temperature, dim=-1)
    return {
        "loss": -(temperature**2) * (p * log_q).sum(dim=-1),
        "dstudent": temperature * (log_q.exp() - p),
    }
