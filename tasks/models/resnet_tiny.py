"""A small ResNet-like classifier: convolutions, batch norms, residuals.

For ``kabuild model``: ``build`` returns it with random weights, ``inputs`` one call's arguments.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

SIZE = 32
WIDTHS = (16, 32, 64)
BLOCKS = 2
CLASSES = 100


class Block(nn.Module):
    """Two convolutions around which the input goes, through a third where sizes change."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 3, stride=stride, padding=1, bias=False)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
        changes = stride != 1 or before != width
        self.aside = nn.Conv2d(before, width, 1, stride=stride) if changes else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Return [batch, width, height / stride, width / stride] of [batch, before, ...]."""
        y = functional.relu(self.norm1(self.conv1(x)))
        return functional.relu(self.norm2(self.conv2(y)) + self.aside(x))


class ResNet(nn.Module):
    """Images to scores of classes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, WIDTHS[0], 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(WIDTHS[0])
        widths = list(zip((WIDTHS[0], *WIDTHS), WIDTHS, strict=False))
        self.blocks = nn.Sequential(
            *(
                Block(before if i == 0 else width, width, 2 if i == 0 and before != width else 1)
                for before, width in widths
                for i in range(BLOCKS)
            )
        )
        self.head = nn.Linear(WIDTHS[-1], CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        """Return [batch, classes] of images [batch, 3, size, size]."""
        x = self.blocks(functional.relu(self.norm(self.conv(images))))
        return self.head(x.mean((2, 3)))


def build() -> nn.Module:
    """Return the model, with random weights."""
    return ResNet().eval()


def inputs(generator: Generator) -> tuple[Tensor, ...]:
    """Draw one call's arguments: two images."""
    return (torch.randn(2, 3, SIZE, SIZE, generator=generator),)
