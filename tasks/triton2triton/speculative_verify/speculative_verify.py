"""Verification of drafts: one program a sequence, which counts, and walks over a row twice."""

import triton
import triton.language as tl


@triton.jit
def verify_kernel(
    token, draft, target, uniform, accepted, after, depth, vocab, BLOCK: tl.constexpr
):
    sequence = tl.program_id(0).to(tl.int64)
    passed = 0
    going = True
    for i in range(depth):
        place = sequence * depth + i
        drafted = tl.load(token + place)
        small = tl.load(draft + place * vocab + drafted)
        large = tl.load(target + (place + sequence) * vocab + drafted)
        going = going & (tl.load(uniform + place) * small < large)
        passed += going.to(tl.int32)
    tl.store(accepted + sequence, passed)

    large_row = target + (sequence * (depth + 1) + passed) * vocab
    small_row = draft + (sequence * depth + tl.minimum(passed, depth - 1)) * vocab
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, vocab, BLOCK):
        col = start + tl.arange(0, BLOCK)
        large = tl.load(large_row + col, mask=col < vocab, other=0.0)
        small = tl.load(small_row + col, mask=col < vocab, other=0.0)
        sums += tl.maximum(large - small, 0.0)
    total = tl.sum(sums, axis=0)
    whole = (passed == depth) | (total == 0.0)
    divisor = tl.where(total == 0.0, 1.0, total)
    for start in range(0, vocab, BLOCK):
        col = start + tl.arange(0, BLOCK)
        large = tl.load(large_row + col, mask=col < vocab, other=0.0)
        small = tl.load(small_row + col, mask=col < vocab, other=0.0)
        rest = tl.maximum(large - small, 0.0) / divisor
        tl.store(after + sequence * vocab + col, tl.where(whole, large, rest), mask=col < vocab)


def speculative_verify(token, draft, target, uniform, accepted, after, *, batch, depth, vocab):
    """Write accepted [batch] and after [batch, vocab]."""
    verify_kernel[(batch,)](
        token, draft, target, uniform, accepted, after, depth, vocab, BLOCK=1024, num_warps=4
    )
