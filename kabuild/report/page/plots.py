"""Plots of speedups as inline SVG.

Every plot has a title for screen readers, and the page has its figures as a table, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from kabuild.model.speedup import Speedup
from kabuild.report.page.svg import WIDTH, Log, dot, drawing, line, path, series, text

_LONGEST = 36
"""Letters of a config's name beside its interval."""


@dataclass(frozen=True)
class Interval:
    """A measured ratio with its 95 % interval."""

    name: str
    value: float
    low: float
    high: float

    @property
    def kind(self) -> str:
        """A class of the style: what the whole interval says."""
        return "win" if self.low > 1 else "loss" if self.high < 1 else "tie"

    @property
    def label(self) -> str:
        """The figure beside the interval; marked if it is only the lower end."""
        mark = "~" if Speedup(self.value, self.low, self.high).wide else ""
        return f"{mark}{self.value:.2f}x"

    @property
    def text(self) -> str:
        """The tooltip."""
        return f"{self.name}: {self.value:.3g}x ({self.low:.3g} to {self.high:.3g})"


@dataclass(frozen=True)
class Curve:
    """fast_p of one evaluation; ``number`` is its place among all, also of those without one."""

    number: int
    name: str
    shares: Mapping[float, float]


def intervals(title: str, items: Sequence[Interval]) -> Markup:
    """One line per config on a logarithmic axis, with 1x marked."""
    top, row = 8, 22
    left = 20 + 9 * min(_LONGEST, max(len(item.name) for item in items))
    low = min(1.0, *(item.low for item in items)) / 1.1
    high = max(1.0, *(item.high for item in items)) * 1.1
    scale = Log(low, high, left, WIDTH - 70)
    height = top + row * len(items) + 26
    parts = [line("one", scale(1.0), top, scale(1.0), height - 22)]
    for number, item in enumerate(items):
        y = top + row * number + row / 2
        parts += [
            text("name", left - 12, y + 4, _clip(item.name)),
            line(f"{item.kind} whisker", scale(item.low), y, scale(item.high), y),
            dot(item.kind, scale(item.value), y, item.text),
            text("name", WIDTH - 8, y + 4, item.label),
        ]
    parts += [text("tick", scale(tick), height - 6, f"{tick:g}x") for tick in scale.ticks()]
    return drawing(title, height, parts)


def curves(title: str, items: Sequence[Curve]) -> Markup:
    """fast_p: for each evaluation the share of tasks that are right and faster than p."""
    height, left, right, bottom, top = 270, 48, 24, 44, 14
    thresholds = sorted({p for item in items for p in item.shares})
    step = (WIDTH - left - right) / max(1, len(thresholds) - 1)
    xs = {p: left + step * number for number, p in enumerate(thresholds)}
    floor = height - bottom
    parts = []
    for level in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = floor - level * (floor - top)
        parts += [
            line("grid", left, y, WIDTH - right, y),
            text("name", left - 8, y + 4, f"{level:.0%}"),
        ]
    for item in items:
        kind = series(item.number)
        points = [
            (p, share, xs[p], floor - share * (floor - top))
            for p, share in sorted(item.shares.items())
        ]
        parts.append(path(kind, [(x, y) for _, _, x, y in points], item.name))
        parts += [
            dot(kind, x, y, f"{item.name}: {share:.0%} right and more than {p:g}x as fast")
            for p, share, x, y in points
        ]
    parts += [text("tick", x, floor + 19, f"{p:g}x") for p, x in xs.items()]
    middle = (left + WIDTH - right) / 2
    parts.append(text("tick", middle, height - 6, "right, and more than p times as fast"))
    return drawing(title, height, parts)


def _clip(shown: str) -> str:
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
