"""Plots as inline SVG. Colours come from the page's style, so that they follow its mode.

Every plot has a title for those who cannot see it, and the page has its figures as a table, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

WIDTH = 640


@dataclass(frozen=True)
class Interval:
    """A measured ratio with its 95 % interval."""

    name: str
    value: float
    low: float
    high: float

    @property
    def text(self) -> str:
        """For those who point at it."""
        return f"{self.name}: {self.value:.3g}x ({self.low:.3g} to {self.high:.3g})"


@dataclass(frozen=True)
class Point:
    """A kernel on one config: flops per byte, and bytes and flops per second."""

    name: str
    intensity: float
    flops: float
    series: int

    @property
    def text(self) -> str:
        """For those who point at it."""
        moved = self.flops / self.intensity
        return f"{self.name}: {self.flops / 1e9:.3g} GFLOP/s, {moved / 1e9:.3g} GB/s"


def intervals(title: str, items: Sequence[Interval]) -> Markup:
    """One line per config on a logarithmic axis, with 1x marked."""
    top, row, left = 8, 22, 250
    low = min(1.0, *(item.low for item in items)) / 1.1
    high = max(1.0, *(item.high for item in items)) * 1.1
    scale = _Log(low, high, left, WIDTH - 60)
    height = top + row * len(items) + 26
    parts = [_line("one", scale(1.0), top, scale(1.0), height - 22)]
    for number, item in enumerate(items):
        y = top + row * number + row / 2
        kind = "win" if item.low > 1 else "loss" if item.high < 1 else "tie"
        parts += [
            f'<text class="name" x="{left - 12}" y="{y + 4:.1f}">{escape(_clip(item.name))}</text>',
            _line(f"{kind} whisker", scale(item.low), y, scale(item.high), y),
            _dot(kind, scale(item.value), y, item.text),
            f'<text x="{WIDTH - 52}" y="{y + 4:.1f}">{item.value:.2f}x</text>',
        ]
    parts += [
        f'<text class="tick" x="{scale(tick):.1f}" y="{height - 6}">{tick:g}x</text>'
        for tick in scale.ticks()
    ]
    return _svg(title, height, parts)


def curves(title: str, series: Mapping[str, Mapping[float, float]]) -> Markup:
    """fast_p: for each evaluation the share of tasks that are right and faster than p."""
    height, left, bottom = 240, 44, 40
    thresholds = sorted({p for curve in series.values() for p in curve})
    step = (WIDTH - left - 20) / max(1, len(thresholds) - 1)
    xs = {p: left + step * number for number, p in enumerate(thresholds)}
    floor = height - bottom
    parts = []
    for level in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = floor - level * (floor - 14)
        parts += [
            _line("grid", left, y, WIDTH - 20, y),
            f'<text class="name" x="{left - 6}" y="{y + 4:.1f}">{level:.0%}</text>',
        ]
    for number, (name, curve) in enumerate(series.items()):
        line = " ".join(
            f"{xs[p]:.1f},{floor - share * (floor - 14):.1f}" for p, share in sorted(curve.items())
        )
        parts.append(
            f'<polyline class="series s{number % 6}" points="{line}">'
            f"<title>{escape(name)}</title></polyline>"
        )
    parts += [
        f'<text class="tick" x="{x:.1f}" y="{floor + 18}">{p:g}x</text>' for p, x in xs.items()
    ]
    parts.append(
        f'<text class="tick" x="{(left + WIDTH) / 2:.0f}" y="{height - 4}">'
        "right, and more than p times as fast as the baseline</text>"
    )
    return _svg(title, height, parts)


def roofline(title: str, points: Sequence[Point], bytes_per_second: float) -> Markup:
    """Rates over intensity, both logarithmic, below the best memory rate that was measured."""
    height, left = 300, 70
    xs = _Log(
        min(p.intensity for p in points) / 2, max(p.intensity for p in points) * 2, left, WIDTH - 20
    )
    top = max(*(p.flops for p in points), bytes_per_second * xs.low) * 2
    ys = _Log(min(p.flops for p in points) / 2, top, height - 40, 12)
    ends = [(x, min(max(bytes_per_second * x, ys.low), ys.high)) for x in (xs.low, xs.high)]
    if bytes_per_second * xs.high > ys.high:
        ends[1] = (ys.high / bytes_per_second, ys.high)
    if bytes_per_second * xs.low < ys.low:
        ends[0] = (ys.low / bytes_per_second, ys.low)
    line = " ".join(f"{xs(x):.1f},{ys(y):.1f}" for x, y in ends)
    parts = [f'<polyline class="one" points="{line}"/>']
    parts += [
        _dot(f"series s{point.series % 6}", xs(point.intensity), ys(point.flops), point.text)
        for point in points
    ]
    parts += [
        f'<text class="tick" x="{xs(x):.1f}" y="{height - 22}">{x:g}</text>' for x in xs.ticks()
    ]
    parts += [
        f'<text class="name" x="{left - 8}" y="{ys(y) + 4:.1f}">{y / 1e9:g}</text>'
        for y in ys.ticks()
    ]
    parts.append(
        f'<text class="tick" x="{(left + WIDTH) / 2:.0f}" y="{height - 4}">'
        "operations per byte; GFLOP/s upwards</text>"
    )
    return _svg(title, height, parts)


@dataclass(frozen=True)
class _Log:
    """A logarithmic axis from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        part = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + part * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round numbers on the axis: 1, 2, 5 of each power of ten, and fewer where many fit."""
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        steps = (1, 2, 5) if len(powers) <= 3 else (1,)
        every = max(1, len(powers) // 8)
        found = [step * 10.0**power for power in powers[::every] for step in steps]
        return [value for value in found if self.low <= value <= self.high]


def _clip(text: str) -> str:
    return text if len(text) <= 36 else f"{text[:35]}…"


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _dot(kind: str, x: float, y: float, text: str) -> str:
    title = f"<title>{escape(text)}</title>"
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4">{title}</circle>'


def _svg(title: str, height: float, parts: Sequence[str]) -> Markup:
    head = (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>"
    )
    return Markup(head + "".join(map(str, parts)) + "</svg>")  # noqa: S704 - escaped above
