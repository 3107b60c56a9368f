"""A model of a few operators, and kernels for its norms."""

from __future__ import annotations

MODEL = '''
import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(16))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Net(nn.Module):
    """<b>Two</b> layers."""

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(Norm() for _ in range(2))
        self.layers = nn.ModuleList(nn.Linear(16, 16, bias=False) for _ in range(2))

    def forward(self, x):
        for norm, layer in zip(self.norms, self.layers):
            x = layer(norm(x))
        return x, x - x


LOGITS = 0


def build():
    return Net().eval()


def inputs(generator):
    return (torch.randn(8, 16, generator=generator),)


def loss(results, x):
    return (results[0] - x).pow(2).mean()
'''

FASTER = """
import torch


def norm(x, weight):
    return torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, 1e-5)
"""
OFF = """

class Off(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return 1.01 * gradient
"""
WRONG = FASTER.replace("1e-5)", "1e-5) * 1.01")
