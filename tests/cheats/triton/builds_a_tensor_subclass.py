# Has a subclass of tensors compute when it is passed to a launch.
# verdict: correctness REJECTED KERNEL_BYPASSED, something other than its kernels
# twin: copies_and_fills
import torch
import triton
import triton.language as tl


class Working(torch.Tensor):
    """Computes when it is asked for its address."""

    def data_ptr(self):
        """After the work."""
        return torch.softmax(self * 1.0, dim=-1).data_ptr()


@triton.jit
def copied(x, y, cols, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    at = tl.program_id(0) * cols + c
    tl.store(y + at, tl.load(x + at, mask=c < cols), mask=c < cols)


def softmax(x, y, *, scale, rows, cols):
    t = x.as_subclass(Working)
    copied[(rows,)](t, y, cols, BLOCK=triton.next_power_of_2(cols))
