"""A kind of input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.hostile.draw import Draw
from tests.hostile.ground import Ground


@dataclass(frozen=True)
class Kind:
    """A kind of input.

    Attributes:
        share: of the inputs, relative to the other kinds.
        play: make one input, give it to the program, and look at what comes of it.
        template: the workspace that it begins with.
    """

    name: str
    share: float
    play: Callable[[Draw, Ground], None]
    template: str = "gates"
