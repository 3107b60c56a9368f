"""Oracle of the gae task: the recurrence, one step of all environments after another."""

import torch


def inputs(config, generator):
    """Draw rewards that are mostly small with a few large ones, values, and ends of episodes.

    Episodes are short in some environments and have no end in others.
    """
    steps, envs = config["steps"], config["envs"]
    reward = 0.2 + 0.3 * torch.randn(steps, envs, generator=generator)
    reward += 5.0 * (torch.rand(steps, envs, generator=generator) < 0.02)
    level = 3.0 * torch.randn(envs, generator=generator)
    ends = 0.15 * torch.rand(envs, generator=generator) ** 2
    ends *= torch.rand(envs, generator=generator) < 0.6
    return {
        "reward": reward,
        "value": level + torch.randn(steps, envs, generator=generator),
        "done": (torch.rand(steps, envs, generator=generator) < ends).to(torch.uint8),
        "last": level + torch.randn(envs, generator=generator),
    }


def reference(reward, value, done, last, gamma, lam, **_):
    """Return advantage and returns [steps, envs]."""
    going = gamma * (done == 0).to(value.dtype)
    after = torch.cat((value[1:], last[None]))
    advantage = reward + going * after - value
    for step in range(len(reward) - 2, -1, -1):
        advantage[step] += lam * going[step] * advantage[step + 1]
    return {"advantage": advantage, "returns": advantage + value}
