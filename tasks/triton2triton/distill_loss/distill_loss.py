"""Distillation: one program a row, which reads it for its maxima, its sums and its gradient."""

import triton
import triton.language as tl


@triton.jit
def distill_kernel(student, teacher, loss, dstudent, temperature, vocab, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * vocab
    cold = 1.0 / temperature
    low = float("-inf")
    student_peaks = tl.full((BLOCK,), low, dtype=tl.float32)
    teacher_peaks = tl.full((BLOCK,), low, dtype=tl.float32)
    for start in range(0, vocab, BLOCK):
        col = start + tl.arange(0, BLOCK)
        s = tl.load(student + row + col, mask=col < vocab, other=low).to(tl.float32)
        t = tl.load(teacher + row + col, mask=col < vocab, other=low).to(tl.float32)
        student_peaks = tl.maximum(student_peaks, s)
        teacher_peaks = tl.maximum(teacher_peaks, t)
    student_peak = tl.max(student_peaks, axis=0)
    teacher_peak = tl.max(teacher_peaks, axis=0)

    student_sums = tl.zeros((BLOCK,), dtype=tl.float32)
    teacher_sums = tl.zeros((BLOCK,), dtype=tl.float32)
    across = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, vocab, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < vocab
        s = tl.load(student + row + col, mask=inside, other=0.0).to(tl.float32)
        t = tl.load(teacher + row + col, mask=inside, other=0.0).to(tl.float32)
        s = (s - student_peak) * cold
        t = (t - teacher_peak) * cold
        weight = tl.where(inside, tl.exp(t), 0.0)
        student_sums += tl.where(inside, tl.exp(s), 0.0)
        teacher_sums += weight
        across += tl.where(inside, weight * s, 0.0)
    student_sum = tl.sum(student_sums, axis=0)
    teacher_sum = tl.sum(teacher_sums, axis=0)
    entropy = tl.log(student_sum) - tl.sum(across, axis=0) / teacher_sum
    tl.store(loss + tl.program_id(0), temperature * temperature * entropy)

    for start in range(0, vocab, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < vocab
        s = tl.load(student + row + col, mask=inside, other=0.0).to(tl.float32)
        t = tl.load(teacher + row + col, mask=inside, other=0.0).to(tl.float32)
        q = tl.exp((s - student_peak) * cold) / student_sum
        p = tl.exp((t - teacher_peak) * cold) / teacher_sum
        tl.store(dstudent + row + col, temperature * (q - p), mask=inside)


def distill_loss(student, teacher, loss, dstudent, *, temperature, rows, vocab):
    """Write the loss of each row and its gradient by the student's logits [rows, vocab]."""
    distill_kernel[(rows,)](
        student, teacher, loss, dstudent, temperature, vocab, BLOCK=1024, num_warps=4
    )
