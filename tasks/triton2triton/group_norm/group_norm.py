"""Group normalisation and SiLU: one program a group, which walks over it three times."""

import triton
import triton.language as tl


@triton.jit
def group_norm_kernel(x, weight, bias, y, eps, groups, width, pixels, BLOCK: tl.constexpr):
    image = tl.program_id(0).to(tl.int64)
    group = tl.program_id(1)
    size = width * pixels
    begin = (image * groups + group) * size
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, size, BLOCK):
        i = start + tl.arange(0, BLOCK)
        sums += tl.load(x + begin + i, mask=i < size, other=0.0).to(tl.float32)
    mean = tl.sum(sums, axis=0) / size
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, size, BLOCK):
        i = start + tl.arange(0, BLOCK)
        value = tl.load(x + begin + i, mask=i < size, other=0.0).to(tl.float32)
        centred = tl.where(i < size, value - mean, 0.0)
        squares += centred * centred
    scale = tl.rsqrt(tl.sum(squares, axis=0) / size + eps)
    for start in range(0, size, BLOCK):
        i = start + tl.arange(0, BLOCK)
        inside = i < size
        channel = group * width + i // pixels
        value = tl.load(x + begin + i, mask=inside, other=0.0).to(tl.float32)
        gain = tl.load(weight + channel, mask=inside, other=0.0).to(tl.float32)
        shift = tl.load(bias + channel, mask=inside, other=0.0).to(tl.float32)
        normal = (value - mean) * scale * gain + shift
        tl.store(y + begin + i, normal / (1.0 + tl.exp(-normal)), mask=inside)


def group_norm(x, weight, bias, y, *, eps, batch, groups, width, pixels):
    """Normalise and activate x [batch, groups * width, pixels] into y."""
    group_norm_kernel[(batch, groups)](
        x, weight, bias, y, eps, groups, width, pixels, BLOCK=1024, num_warps=4
    )
