"""A small GPT-2-like language model: learned positions, LayerNorm, GELU, one head matrix.

For ``kabuild model``: ``build`` returns it with random weights, ``inputs`` one call's arguments.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

VOCABULARY = 384
WIDTH = 96
HEADS = 3
LAYERS = 2
TOKENS = 48
BATCH = 2
DTYPE = torch.float32


class Attention(nn.Module):
    """Causal attention; queries, keys and values come from one product."""

    def __init__(self) -> None:
        super().__init__()
        self.together = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Return [batch, tokens, width] of the same."""
        batch, tokens, _ = x.shape
        parts = self.together(x).split(WIDTH, dim=-1)
        q, k, v = (part.view(batch, tokens, HEADS, -1).transpose(1, 2) for part in parts)
        scores = q @ k.transpose(-2, -1) / (WIDTH // HEADS) ** 0.5
        later = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).triu(1)
        weights = functional.softmax(scores.masked_fill(later, float("-inf")), dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, tokens, WIDTH))


class Block(nn.Module):
    """Attention and feed-forward, each behind a norm and around a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Return [batch, tokens, width] of the same."""
        x = x + self.attention(self.norm1(x))
        return x + self.narrow(functional.gelu(self.wide(self.norm2(x)), approximate="tanh"))


class GPT2(nn.Module):
    """Token numbers to logits."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(TOKENS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits [batch, tokens, vocabulary] of tokens [batch, tokens]."""
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


LOGITS = 0


def build() -> nn.Module:
    """Return the model, with random weights."""
    return GPT2().to(DTYPE).eval()


def inputs(generator: Generator) -> tuple[Tensor, ...]:
    """Draw one call's arguments: the tokens of some sequences."""
    return (torch.randint(VOCABULARY, (BATCH, TOKENS), generator=generator),)


def loss(logits: Tensor, tokens: Tensor) -> Tensor:
    """Return what training lowers: how unlikely each next token was."""
    return functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
