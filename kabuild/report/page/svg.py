"""What plots are drawn with: shapes, logarithmic axes, numbers with units.

Colours come from the page's style, so that they follow its mode.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

WIDTH = 720
SERIES = 6
"""As many colours the style has; further series repeat them with broken lines."""

_PREFIXES = (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0))


@dataclass(frozen=True)
class Log:
    """A logarithmic axis: values from ``low`` to ``high`` lie from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The place of a value."""
        part = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + part * (self.end - self.start)

    def value(self, place: float) -> float:
        """The value that lies at a place."""
        part = (place - self.start) / (self.end - self.start)
        return float(self.low * (self.high / self.low) ** part)

    def ticks(self) -> list[float]:
        """Round numbers on the axis: 1, 2, 5 of each power of ten, and fewer where many fit."""
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        steps = (1, 2, 5) if self.high / self.low <= 200 else (1,)
        every = max(1, math.ceil(len(powers) / 8))
        found = [step * 10.0**power for power in powers if power % every == 0 for step in steps]
        return [value for value in found if self.low <= value <= self.high]


def series(number: int) -> str:
    """The class of a series, by the number of its evaluation: of its curve, dots and key."""
    return f"series s{number % SERIES}" + (" again" if number >= SERIES else "")


def quantity(value: float, unit: str) -> str:
    """``3.94e12`` and ``B/s`` as ``3.94 TB/s``: three digits, in a unit that fits."""
    prefix, size = next((p for p in _PREFIXES if value >= p[1] * 0.9995), _PREFIXES[-1])
    scaled = value / size
    digits = 0 if scaled >= 99.95 else 1 if scaled >= 9.995 else 2
    text = f"{scaled:.{digits}f}" if scaled >= 0.01 else f"{scaled:.2g}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {prefix}{unit}"


def text(kind: str, x: float, y: float, shown: str) -> str:
    """A ``name`` ends at ``x``, a ``tick`` has it in its middle."""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(shown)}</text>'


def line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    """A straight line."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def path(kind: str, points: Sequence[tuple[float, float]], title: str = "") -> str:
    """Straight lines from point to point, with a tooltip."""
    at = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline class="{kind}" points="{at}"><title>{escape(title)}</title></polyline>'


def dot(kind: str, x: float, y: float, title: str, *, radius: float = 4) -> str:
    """A circle with a tooltip."""
    hint = f"<title>{escape(title)}</title>"
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}">{hint}</circle>'


def anchor(label: str) -> str:
    """A label as an element's id."""
    return "".join(c if c.isalnum() else "-" for c in label).strip("-")


def link(label: str, shape: str) -> str:
    """A shape that leads to where the page shows ``label``."""
    return f'<a href="#{escape(anchor(label))}">{shape}</a>'


def drawing(title: str, height: float, parts: Sequence[str]) -> Markup:
    """The whole plot; ``title`` is for screen readers. Parts are escaped already."""
    head = (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>"
    )
    return Markup(head + "".join(parts) + "</svg>")  # noqa: S704 - escaped above
