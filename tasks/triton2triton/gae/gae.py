"""Advantages: one program for 128 environments, which walks back over the steps."""

import triton
import triton.language as tl


@triton.jit
def gae_kernel(
    reward, value, done, last, advantage, returns, gamma, lam, steps, envs, BLOCK: tl.constexpr
):
    env = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = env < envs
    after = tl.load(last + env, mask=inside, other=0.0)
    running = tl.zeros((BLOCK,), dtype=tl.float32)
    for back in range(steps):
        place = (steps - 1 - back).to(tl.int64) * envs + env
        going = 1.0 - tl.load(done + place, mask=inside, other=0).to(tl.float32)
        own = tl.load(value + place, mask=inside, other=0.0)
        delta = tl.load(reward + place, mask=inside, other=0.0) + gamma * going * after - own
        running = delta + gamma * lam * going * running
        tl.store(advantage + place, running, mask=inside)
        tl.store(returns + place, running + own, mask=inside)
        after = own


def gae(reward, value, done, last, advantage, returns, *, gamma, lam, steps, envs):
    """Write advantage and returns [steps, envs]."""
    gae_kernel[(triton.cdiv(envs, 128),)](
        reward, value, done, last, advantage, returns, gamma, lam, steps, envs,
        BLOCK=128, num_warps=4,
    )  # fmt: skip
