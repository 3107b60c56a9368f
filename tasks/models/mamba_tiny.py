"""A small Mamba-2-like language model: a gated state space in its form of matrix products.

A state decays by a factor of its own at each token. What a token adds to all later ones is then a
product of three matrices, masked by the decay between the two.

For ``kabuild model``: ``build`` returns it with random weights, ``inputs`` one call's arguments.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

VOCABULARY = 384
WIDTH = 64
INNER = 128
HEADS = 4
STATE = 16
LAYERS = 2
TOKENS = 48
NEAR = 4


class Mixer(nn.Module):
    """Mixes tokens with earlier ones: by a short convolution, then by the state."""

    def __init__(self) -> None:
        super().__init__()
        self.mixed = INNER + 2 * STATE
        self.into = nn.Linear(WIDTH, INNER + self.mixed + HEADS, bias=False)
        self.near = nn.Conv1d(self.mixed, self.mixed, NEAR, groups=self.mixed, padding=NEAR - 1)
        self.rate = nn.Parameter(torch.log(torch.arange(1.0, HEADS + 1)))
        self.step = nn.Parameter(torch.linspace(-3.0, -1.0, HEADS))
        self.skip = nn.Parameter(torch.linspace(0.5, 1.5, HEADS))
        self.weight = nn.Parameter(torch.ones(INNER))
        self.out = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return [batch, tokens, width] of the same."""
        batch, tokens, _ = x.shape
        gate, mixed, step = self.into(x).split([INNER, self.mixed, HEADS], dim=-1)
        mixed = functional.silu(self.near(mixed.transpose(1, 2))[..., :tokens].transpose(1, 2))
        values, write, read = mixed.split([INNER, STATE, STATE], dim=-1)
        values = values.view(batch, tokens, HEADS, -1).transpose(1, 2)
        step = functional.softplus(step + self.step).transpose(1, 2)
        faded = torch.cumsum(-step * self.rate.exp()[:, None], dim=-1)
        later = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).triu(1)
        decay = (faded[..., :, None] - faded[..., None, :]).masked_fill(later, float("-inf")).exp()
        scores = (read @ write.transpose(1, 2))[:, None] * decay
        y = scores @ (values * step[..., None]) + self.skip[:, None, None] * values
        y = y.transpose(1, 2).reshape(batch, tokens, INNER) * functional.silu(gate)
        return self.out(functional.rms_norm(y, (INNER,), self.weight, 1e-5))


class Mamba(nn.Module):
    """Token numbers to logits."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.norms = nn.ModuleList(nn.RMSNorm(WIDTH, eps=1e-5) for _ in range(LAYERS + 1))
        self.mixers = nn.ModuleList(Mixer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits [batch, tokens, vocabulary] of tokens [batch, tokens]."""
        x = self.tokens(tokens)
        for norm, mixer in zip(self.norms, self.mixers, strict=False):
            x = x + mixer(norm(x))
        return self.head(self.norms[-1](x))


LOGITS = 0


def build() -> nn.Module:
    """Return the model, with random weights."""
    return Mamba().eval()


def inputs(generator: Generator) -> tuple[Tensor, ...]:
    """Draw one call's arguments: the tokens of two sequences."""
    return (torch.randint(VOCABULARY, (2, TOKENS), generator=generator),)


def loss(logits: Tensor, tokens: Tensor) -> Tensor:
    """Return what training lowers: how unlikely each next token was."""
    return functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
