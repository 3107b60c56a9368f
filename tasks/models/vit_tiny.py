"""A small ViT-like classifier: patches of an image as tokens, norms before attention.

For ``kabuild model``: ``build`` returns it with random weights, ``inputs`` one call's arguments.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

SIZE = 32
PATCH = 4
WIDTH = 96
HEADS = 3
LAYERS = 2
CLASSES = 100


class Block(nn.Module):
    """Attention and feed-forward, each behind a norm and around a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.together, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Return [batch, tokens, width] of the same."""
        x = x + self._attention(self.norm1(x))
        return x + self.narrow(functional.gelu(self.wide(self.norm2(x))))

    def _attention(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        parts = self.together(x).view(batch, tokens, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(parts[0], parts[1], parts[2])
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, WIDTH))


class ViT(nn.Module):
    """Images to scores of classes, by the features of a token of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH)
        self.first = nn.Parameter(0.02 * torch.randn(1, 1, WIDTH))
        self.places = nn.Parameter(0.02 * torch.randn(1, 1 + (SIZE // PATCH) ** 2, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        """Return [batch, classes] of images [batch, 3, size, size]."""
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(x.shape[0], -1, -1), x), dim=1) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


def build() -> nn.Module:
    """Return the model, with random weights."""
    return ViT().eval()


def inputs(generator: Generator) -> tuple[Tensor, ...]:
    """Draw one call's arguments: two images."""
    return (torch.randn(2, 3, SIZE, SIZE, generator=generator),)
