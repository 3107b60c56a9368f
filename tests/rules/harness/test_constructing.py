"""Constructors whose weights are handed over draw no large ones."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pytest
import torch
from pyrunner_call.call_tree import Boundary, Functions
from pyrunner_call.constructing import LARGE, undrawn
from torch import Tensor, nn

WIDE = 1 << 10
assert WIDE * WIDE == LARGE

NAME = "ModelNew"
NODE: Mapping[str, Any] = {
    "call": {"call": {"function": NAME}, "args": [], "keywords": []},
    "args": [],
    "keywords": [],
}


class Model(nn.Module):
    """A large weight and a small one; it knows its weights as they were when it was made."""

    def __init__(self) -> None:
        super().__init__()
        self.large = nn.Parameter(torch.full((WIDE, WIDE), 7.0))
        self.small = nn.Parameter(torch.full((4,), 7.0))
        nn.init.normal_(self.large)
        nn.init.normal_(self.small)
        self.drawn = {name: bool((t != 7.0).any()) for name, t in self.named_parameters()}


class Plain:
    """An object that takes no state."""

    def __init__(self) -> None:
        weight = torch.full((WIDE, WIDE), 7.0)
        self.drawn = bool((nn.init.normal_(weight) != 7.0).any())


def constructed(kind: type[Any], state: Mapping[str, Tensor]) -> Any:
    """The object that a runner would make."""
    module = ModuleType("candidate")
    setattr(module, NAME, kind)
    functions = Functions(module, None, "y", NODE, (NAME,), "name")
    return Boundary(functions, {}, "f32", state, torch.device("cpu")).function


def test_large_weights_are_those_of_the_state_and_were_not_drawn() -> None:
    state = {"large": torch.ones(WIDE, WIDE), "small": torch.ones(4)}

    model = constructed(Model, state)

    assert model.drawn == {"large": False, "small": True}
    assert all(torch.equal(model.state_dict()[name], wanted) for name, wanted in state.items())


def test_what_takes_no_state_draws_everything() -> None:
    assert constructed(Plain, {}).drawn


def test_the_functions_are_put_back_whatever_a_constructor_does() -> None:
    before = nn.init.normal_

    with pytest.raises(ZeroDivisionError), undrawn():
        _fail(replaced=nn.init.normal_ is not before)

    assert nn.init.normal_ is before


def _fail(*, replaced: bool) -> None:
    assert replaced
    raise ZeroDivisionError
