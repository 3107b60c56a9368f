"""A small mixture of experts: each token goes through the two experts that a router picks.

All experts see all tokens, and what a token has not picked counts zero: a model whose shapes
depend on values cannot be exported.

For ``kabuild model``: ``build`` returns it with random weights, ``inputs`` one call's arguments.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

WIDTH = 64
HIDDEN = 96
EXPERTS = 8
PICKED = 2
LAYERS = 2
TOKENS = 48


class Mixture(nn.Module):
    """SwiGLU experts behind a router."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.gate = nn.Parameter(torch.randn(EXPERTS, WIDTH, HIDDEN) * WIDTH**-0.5)
        self.wide = nn.Parameter(torch.randn(EXPERTS, WIDTH, HIDDEN) * WIDTH**-0.5)
        self.narrow = nn.Parameter(torch.randn(EXPERTS, HIDDEN, WIDTH) * HIDDEN**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        """Return [tokens, width] of the same."""
        scores, picked = torch.topk(functional.softmax(self.router(x), dim=-1), PICKED, dim=-1)
        shares = scores / scores.sum(-1, keepdim=True)
        weights = (functional.one_hot(picked, EXPERTS) * shares[..., None]).sum(1)
        hidden = functional.silu(x @ self.gate) * (x @ self.wide)
        return (hidden @ self.narrow * weights.t()[..., None]).sum(0)


class MoE(nn.Module):
    """Layers of mixtures around residuals, each behind a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.RMSNorm(WIDTH, eps=1e-5) for _ in range(LAYERS))
        self.mixtures = nn.ModuleList(Mixture() for _ in range(LAYERS))

    def forward(self, x: Tensor) -> Tensor:
        """Return [batch, tokens, width] of the same."""
        for norm, mixture in zip(self.norms, self.mixtures, strict=True):
            x = x + mixture(norm(x).flatten(0, 1)).view(x.shape)
        return x


def build() -> nn.Module:
    """Return the model, with random weights."""
    return MoE().eval()


def inputs(generator: Generator) -> tuple[Tensor, ...]:
    """Draw one call's arguments: the features of the tokens of two sequences."""
    return (torch.randn(2, TOKENS, WIDTH, generator=generator),)


def loss(result: Tensor, features: Tensor) -> Tensor:
    """Return what training lowers: how far each result is from the next token's features."""
    return (result[:, :-1] - features[:, 1:]).square().mean()
