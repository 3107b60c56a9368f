"""Configs whose tensors no device holds, or that hold nothing, are refused when they are loaded."""

from __future__ import annotations

from typing import Any

import pytest

from kabuild.rule import AttributeProblem
from rules.harness.configs import MOST_CONFIGS, read_configs
from rules.harness.signature import Signature
from rules.harness.tensors import Tensor

ATTRS: dict[str, Any] = {"dims": {"n": "0..999999999999"}, "dtypes": ["f32", "f16"]}


def read(declared: Any, x: Tensor, y: Tensor | None = None) -> int:
    """How many configs are read of a task with the input ``x`` and the output ``y``."""
    outputs = (y or Tensor("y", "T", ("n + 1",)),)
    return len(read_configs(declared, ("configs",), ATTRS, Signature((x,), outputs, (), ("n",))))


@pytest.mark.parametrize(
    ("n", "x"),
    [
        (2**36 + 1, Tensor("x", "T", ("n",))),
        (2**19, Tensor("x", "T", ("n", "n"))),
        (2**34, Tensor("x", "f64", ("4",), count="n")),
        (9, Tensor("x", "T", ("n", "2"), layout="[99999999999, 1]")),
        (10**9, Tensor("x", "u8", ("n", "n", "n", "n"))),
    ],
)
def test_more_than_any_device_holds_is_refused(n: int, x: Tensor) -> None:
    with pytest.raises(AttributeProblem, match=r"^'[xy]' has .* elements in this config") as caught:
        read([{"n": n}], x)
    assert caught.value.path == ("configs", 0)
    assert len(caught.value.message) < 80


@pytest.mark.parametrize(
    ("config", "x"),
    [
        ({"n": 2**36 - 1}, Tensor("x", "T", ("n",))),
        ({"n": 2**36 - 1, "dtype": "f16"}, Tensor("x", "T", ("2 * n",))),
        ({"n": 9}, Tensor("x", "T", ("n", "2"), layout="[99, 1]")),
        ({"n": 0}, Tensor("x", "T", ("n",))),
    ],
)
def test_what_a_device_may_hold_is_accepted(config: dict[str, Any], x: Tensor) -> None:
    assert read([config], x) == 1


def test_an_output_has_elements() -> None:
    x, y = Tensor("x", "T", ("n + 1",)), Tensor("y", "T", ("n",))
    with pytest.raises(AttributeProblem, match="output 'y' has no elements"):
        read([{"n": 0}], x, y)
    assert read([{"n": 1}], x, y) == 1


def test_a_stride_is_not_negative() -> None:
    with pytest.raises(AttributeProblem, match="'n - 9' is -8"):
        read([{"n": 1}], Tensor("x", "T", ("n",), layout="[n - 9]"))


def test_a_list_of_configs_has_an_end() -> None:
    x = Tensor("x", "T", ("n",))
    assert read([{"n": n} for n in range(MOST_CONFIGS)], x) == MOST_CONFIGS
    with pytest.raises(AttributeProblem, match="1001 configs: at most 1,000"):
        read([{"n": n} for n in range(MOST_CONFIGS + 1)], x)
