"""Distillation in two walks over a row: maxima and sums together, then the gradient.

Lanes keep maxima and sums of their own, relative to these. The second walk goes backwards, from
what the first one read last and the cache still has.
"""

import triton
import triton.language as tl

SHORT_ROW = 65536  # bytes; of longer ones a multiprocessor takes one at a time, for the cache


@triton.jit
def distill_kernel(
    student, teacher, loss, dstudent, temperature, cold, vocab,
    LANES: tl.constexpr, DEEP: tl.constexpr, EACH: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    student += row.to(tl.int64) * vocab
    teacher += row.to(tl.int64) * vocab
    dstudent += row.to(tl.int64) * vocab
    # A lane takes DEEP pieces of EACH neighbouring elements at a time.
    deep = tl.arange(0, DEEP)[None, :, None] * (LANES * EACH)
    own = tl.arange(0, LANES)[:, None, None] * EACH + deep + tl.arange(0, EACH)[None, None, :]
    low = float("-inf")
    # A finite logit of the row to begin with: nothing below is infinity minus infinity.
    nothing = tl.zeros((LANES,), dtype=tl.float32)
    student_peak = nothing + tl.load(student).to(tl.float32) * cold
    teacher_peak = nothing + tl.load(teacher).to(tl.float32) * cold
    student_sum = nothing
    teacher_sum = nothing
    across = nothing  # of weights times logits below their peak
    for first in range(0, vocab, LANES * DEEP * EACH):
        col = first + own
        inside = col < vocab
        s = tl.load(student + col, mask=inside, other=low).to(tl.float32) * cold
        t = tl.load(teacher + col, mask=inside, other=low).to(tl.float32) * cold
        higher = tl.maximum(student_peak, tl.max(tl.max(s, axis=2), axis=1))
        risen = higher - student_peak
        student_peak = higher
        below = s - higher[:, None, None]
        student_sum *= tl.exp2(-risen)
        student_sum += tl.sum(tl.sum(tl.exp2(below), axis=2), axis=1)
        higher = tl.maximum(teacher_peak, tl.max(tl.max(t, axis=2), axis=1))
        shrink = tl.exp2(teacher_peak - higher)
        teacher_peak = higher
        weight = tl.exp2(t - higher[:, None, None])
        across = (across - teacher_sum * risen) * shrink
        across += tl.sum(tl.sum(tl.where(inside, weight * below, 0.0), axis=2), axis=1)
        teacher_sum = teacher_sum * shrink + tl.sum(tl.sum(weight, axis=2), axis=1)

    highest = tl.max(student_peak, axis=0)
    risen = highest - student_peak
    whole = tl.sum(student_sum * tl.exp2(-risen), axis=0)
    student_highest = highest
    highest = tl.max(teacher_peak, axis=0)
    shrink = tl.exp2(teacher_peak - highest)
    total = tl.sum(teacher_sum * shrink, axis=0)
    along = tl.sum((across - teacher_sum * risen) * shrink, axis=0) / total
    entropy = (tl.log2(whole) - along) * 0.6931471805599453
    tl.store(loss + row, temperature * temperature * entropy)

    steps = tl.cdiv(vocab, LANES * DEEP * EACH)
    for step in range(steps):
        col = (steps - 1 - step) * (LANES * DEEP * EACH) + own
        inside = col < vocab
        s = tl.load(student + col, mask=inside, other=0.0, eviction_policy="evict_first")
        t = tl.load(teacher + col, mask=inside, other=0.0, eviction_policy="evict_first")
        q = tl.exp2(s.to(tl.float32) * cold - student_highest) * (temperature / whole)
        p = tl.exp2(t.to(tl.float32) * cold - highest) * (temperature / total)
        tl.store(dstudent + col, q - p, mask=inside, eviction_policy="evict_first")


def distill_loss(student, teacher, loss, dstudent, *, temperature, rows, vocab):
    """Write the loss of each row and its gradient by the student's logits [rows, vocab]."""
    long = vocab * student.element_size() > SHORT_ROW
    # Without alignment, neighbouring lanes take neighbouring elements.
    aligned = vocab % 16 == 0
    each, deep = (16 // student.element_size(), 1) if aligned else (1, 8)
    # As many registers as leave room for one program of a long row.
    deep *= (4 if aligned else 2) if long else 1
    lanes = min(triton.next_power_of_2(triton.cdiv(vocab, each * deep)), 512 if long else 256)
    distill_kernel[(rows,)](
        student, teacher, loss, dstudent, temperature, 1.4426950408889634 / temperature, vocab,
        LANES=lanes, DEEP=deep, EACH=each, num_warps=max(lanes // 32, 1),
    )  # fmt: skip
