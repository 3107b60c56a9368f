"""Weight normalisation and its gradients: one program a row, which reads it twice."""

import triton
import triton.language as tl


@triton.jit
def weight_norm_kernel(v, g, dw, w, dv, dg, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    products = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < cols
        value = tl.load(v + row * cols + col, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.load(dw + row * cols + col, mask=inside, other=0.0).to(tl.float32)
        squares += value * value
        products += value * gradient
    inverse = 1.0 / tl.sqrt(tl.sum(squares, axis=0) + 1e-12)
    along = tl.sum(products, axis=0) * inverse
    gain = tl.load(g + row)
    tl.store(dg + row, along)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < cols
        place = row * cols + col
        direction = tl.load(v + place, mask=inside, other=0.0).to(tl.float32) * inverse
        gradient = tl.load(dw + place, mask=inside, other=0.0).to(tl.float32)
        tl.store(w + place, gain * direction, mask=inside)
        tl.store(dv + place, gain * inverse * (gradient - along * direction), mask=inside)


def weight_norm_backward(v, g, dw, w, dv, dg, *, rows, cols):
    """Write w and dv [rows, cols] and dg [rows]."""
    weight_norm_kernel[(rows,)](v, g, dw, w, dv, dg, cols, BLOCK=1024, num_warps=4)
