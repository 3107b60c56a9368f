"""A model's profile as one HTML page with a flame graph."""

from __future__ import annotations

from kabuild.neural.compiled import Compiled
from kabuild.neural.profile import Profile, frames, gain_of, quantity, seconds, shown
from kabuild.report.page.environment import environment

_WIDTH, _HEIGHT = 1000, 22
_NARROWEST = 0.5
_LETTER = 7.0
_COLOURS = 6


def render_page(profile: Profile, title: str, compiled: Compiled | None = None) -> str:
    """One self-contained HTML file; no script is needed to read it.

    ``compiled`` is what ``torch.compile`` makes of the model, if that was asked for.
    """
    whole = profile.flame.seconds or 1.0
    boxes = [
        {
            "x": start / whole * _WIDTH,
            "y": depth * _HEIGHT,
            "width": width,
            "name": frame.name,
            "shown": _clipped(frame.name, width),
            "time": seconds(frame.seconds),
            "share": f"{frame.seconds / whole:.1%}",
            "colour": sum(map(ord, frame.name)) % _COLOURS,
        }
        for depth, start, frame in frames(profile.flame)
        if (width := frame.seconds / whole * _WIDTH) >= _NARROWEST
    ]
    height = max((box["y"] for box in boxes), default=0) + _HEIGHT  # type: ignore[type-var, operator]
    return (
        environment("kabuild.neural")
        .get_template("model.html")
        .render(
            title=f"{title}: where the time goes",
            profile=profile,
            compiled=compiled,
            boxes=boxes,
            size=(_WIDTH, height, _HEIGHT),
            gain=gain_of(profile, profile.parts),
            seconds=seconds,
            amount=quantity,
            inputs=shown,
        )
    )


def _clipped(name: str, width: float) -> str:
    letters = int((width - 6) / _LETTER)
    return name if len(name) <= letters else f"{name[: letters - 1]}…" if letters > 2 else ""
