"""A small BERT-like encoder: learned positions, attention both ways, norms after the residuals.

For ``kabuild model``: ``build`` returns it with random weights, ``inputs`` one call's arguments.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

VOCABULARY = 384
WIDTH = 96
HEADS = 4
LAYERS = 2
TOKENS = 48


class Attention(nn.Module):
    """Attention to all tokens that are no padding."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.value, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, seen: Tensor) -> Tensor:
        """Return [batch, tokens, width] of the same; ``seen`` is [batch, tokens]."""
        batch, tokens, _ = x.shape
        q, k, v = (
            layer(x).view(batch, tokens, HEADS, -1).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=seen[:, None, None])
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, WIDTH))


class Block(nn.Module):
    """Attention and feed-forward, each with a residual and a norm after it."""

    def __init__(self) -> None:
        super().__init__()
        self.attention, self.norm1 = Attention(), nn.LayerNorm(WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor, seen: Tensor) -> Tensor:
        """Return [batch, tokens, width] of the same."""
        x = self.norm1(x + self.attention(x, seen))
        return self.norm2(x + self.narrow(functional.gelu(self.wide(x))))


class Bert(nn.Module):
    """Token numbers to features of each token, and of the first one alone."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(TOKENS, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.pool = nn.Linear(WIDTH, WIDTH)

    def forward(self, tokens: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
        """Return [batch, tokens, width] and [batch, width] of tokens [batch, tokens]."""
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        x = self.norm(x)
        for block in self.blocks:
            x = block(x, seen)
        return x, torch.tanh(self.pool(x[:, 0]))


def build() -> nn.Module:
    """Return the model, with random weights."""
    return Bert().eval()


def inputs(generator: Generator) -> tuple[Tensor, ...]:
    """Draw one call's arguments: the tokens of two sequences, and which are no padding."""
    tokens = torch.randint(VOCABULARY, (2, TOKENS), generator=generator)
    lengths = torch.randint(TOKENS // 2, TOKENS + 1, (2, 1), generator=generator)
    return tokens, torch.arange(TOKENS) < lengths
