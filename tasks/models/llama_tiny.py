"""A small Llama-like language model: grouped queries, rotary positions, RMSNorm, SwiGLU.

For ``kabuild model``: ``build`` returns it with random weights, ``inputs`` one call's arguments.
"""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

VOCABULARY = 512
WIDTH = 128
HEADS = 4
GROUPS = 2
HIDDEN = 352
LAYERS = 2
TOKENS = 64
BATCH = 2
DTYPE = torch.float32


class RMSNorm(nn.Module):
    """Divides each row by its root mean square."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
        return x * scale * self.weight


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Turns pairs of features by an angle that grows with the position."""
    first, second = x.chunk(2, dim=-1)
    turned = torch.cat((-second, first), dim=-1)
    return x * cosine + turned * sine


class Attention(nn.Module):
    """Causal attention in which several query heads share a key and a value."""

    def __init__(self) -> None:
        super().__init__()
        self.size = WIDTH // HEADS
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)
        self.key = nn.Linear(WIDTH, GROUPS * self.size, bias=False)
        self.value = nn.Linear(WIDTH, GROUPS * self.size, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        q = self.query(x).view(batch, tokens, HEADS, self.size).transpose(1, 2)
        k = self.key(x).view(batch, tokens, GROUPS, self.size).transpose(1, 2)
        v = self.value(x).view(batch, tokens, GROUPS, self.size).transpose(1, 2)
        q, k = rotate(q, cosine, sine), rotate(k, cosine, sine)
        k = k.repeat_interleave(HEADS // GROUPS, dim=1)
        v = v.repeat_interleave(HEADS // GROUPS, dim=1)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, tokens, WIDTH))


class FeedForward(nn.Module):
    """SwiGLU: a gate times a value, and back to the width."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.up = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    """Attention and feed-forward, each behind a norm and around a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.attention = RMSNorm(WIDTH), Attention()
        self.norm2, self.feed_forward = RMSNorm(WIDTH), FeedForward()

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x), cosine, sine)
        return x + self.feed_forward(self.norm2(x))


class Llama(nn.Module):
    """Token numbers to logits."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = RMSNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        half = WIDTH // HEADS // 2
        speeds = torch.exp(-math.log(10000.0) * torch.arange(half) / half)
        angles = torch.arange(TOKENS)[:, None] * speeds[None, :]
        angles = torch.cat((angles, angles), dim=-1)
        self.register_buffer("cosine", angles.cos(), persistent=False)
        self.register_buffer("sine", angles.sin(), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, self.cosine, self.sine)
        return self.head(self.norm(x))


LOGITS = 0


def build() -> nn.Module:
    """The model, with random weights."""
    return Llama().to(DTYPE).eval()


def inputs(generator: Generator) -> tuple[Tensor, ...]:
    """One call's arguments: the tokens of some sequences."""
    return (torch.randint(VOCABULARY, (BATCH, TOKENS), generator=generator),)


def loss(logits: Tensor, tokens: Tensor) -> Tensor:
    """What training lowers: how unlikely each next token was."""
    return functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
