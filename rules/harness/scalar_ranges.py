"""The values that scalars have in hidden configs: ``scalar_ranges = { eps = "1e-8..1e-4" }``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kabuild.rule import AttributeProblem

from .configs import Config
from .signature import Scalar, Signature, is_number

Bounds = tuple[int, int] | tuple[float, float]


def read_scalar_ranges(attrs: Mapping[str, Any], signature: Signature) -> dict[str, Bounds]:
    """The bounds of each scalar that varies, both inclusive. Raises AttributeProblem."""
    usual = dict(signature.scalars)
    found: dict[str, Bounds] = {}
    for name, text in (attrs.get("scalar_ranges") or {}).items():
        path = ("scalar_ranges", name)
        if name not in usual:
            known = ", ".join(usual) or "none"
            raise AttributeProblem(f"there is no scalar '{name}'", path, f"known: {known}")
        if not is_number(usual[name]):
            what = f"scalar '{name}' is no number: it has no range"
            raise AttributeProblem(what, path, "give it other values in 'configs'")
        found[name] = _bounds(name, text, usual[name], path)
    return found


def check_scalar_ranges(
    attrs: Mapping[str, Any], signature: Signature, configs: Iterable[Config]
) -> None:
    """Refuse a range that lacks the value of a visible config. Raises AttributeProblem."""
    usual = dict(signature.scalars)
    for name, (low, high) in read_scalar_ranges(attrs, signature).items():
        for config in configs:
            value: Any = dict(config.scalars)[name]
            if not low <= value <= high:
                what = f"'{name}' is {value} in a visible config, outside of {low} to {high}"
                hint = f"usually it is {usual[name]}: include that"
                raise AttributeProblem(what, ("scalar_ranges", name), hint)


def _bounds(name: str, text: Any, usual: Scalar, path: tuple[str, ...]) -> Bounds:
    number = int if isinstance(usual, int) else float
    one, other = sorted((usual, 2 * usual if usual else number(1)))
    example = f'write {name} = "{one}..{other}"'
    try:
        low, high = (number(part) for part in text.split(".."))
    except (AttributeError, ValueError):
        integers = f", an integer as it is usually {usual}" if number is int else ""
        what = f"{text!r} is not a range of scalar '{name}'{integers}"
        raise AttributeProblem(what, path, example) from None
    if not is_number(low) or not is_number(high) or low >= high:
        hint = f'write {name} = "{high}..{low}"' if low > high else example
        raise AttributeProblem(f"'{name}' has no values from {low} to {high}", path, hint)
    return low, high
