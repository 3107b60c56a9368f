"""A roofline as inline SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from kabuild.report.page.roofs import Machine, Timed
from kabuild.report.page.svg import (
    WIDTH,
    Log,
    dot,
    drawing,
    line,
    link,
    path,
    quantity,
    series,
    text,
)

_LEFT, _RIGHT, _TOP, _BOTTOM = 112, 24, 18, 46


def draw(title: str, machine: Machine, timed: Sequence[Timed], *, ways: bool) -> Markup | None:
    """Rates over intensity, both logarithmic, below the roofs of the machine.

    With ``ways``, lines from the baseline of each kernel; without, each dot leads to its task.
    None if no operations are known.
    """
    shown = [item for item in timed if item.done]
    if not shown or machine.arithmetic is None:
        return None
    height = 340 if not ways else 260
    rates = [item.done / seconds for item in shown for seconds in (item.seconds, item.before)]
    nearest = [min(machine.arithmetic.rate, machine.memory.rate * i.intensity) for i in shown]
    intensities = [item.intensity for item in shown]
    xs = Log(min(intensities) / 3, max(intensities) * 3, _LEFT, WIDTH - _RIGHT)
    ys = Log(min(rates) / 3, max(*rates, *nearest) * 4, height - _BOTTOM, _TOP)
    parts = [*_axes(xs, ys), *_roofs(machine, xs, ys)]
    for item in shown:
        parts += _way(xs, ys, item) if ways else ()
        point = _point(xs, ys, machine, item)
        parts.append(point if ways else link(item.task, point))
    return drawing(title, height, parts)


def _axes(xs: Log, ys: Log) -> Iterator[str]:
    for x in xs.ticks():
        yield line("grid", xs(x), ys.start, xs(x), ys.end)
        yield text("tick", xs(x), ys.start + 18, f"{x:g}")
    for y in ys.ticks():
        yield line("grid", xs.start, ys(y), xs.end, ys(y))
        yield text("name", xs.start - 8, ys(y) + 4, quantity(y, "FLOP/s"))
    yield text("tick", (xs.start + xs.end) / 2, ys.start + 38, "operations per byte")


def _roofs(machine: Machine, xs: Log, ys: Log) -> Iterator[str]:
    """The slope of memory, and the level of arithmetic where kernels lie below that."""
    assert machine.arithmetic
    memory, most = machine.memory, machine.arithmetic.rate
    ridge = most / memory.rate
    first = max(xs.low, ys.low / memory.rate)
    last = min(xs.high, ys.high / memory.rate, ridge)
    if first < last:
        ends = [(xs(x), ys(memory.rate * x)) for x in (first, last)]
        yield path("one", ends, f"{memory.text}: {memory.whose}")
        middle = max((ends[0][0] + ends[1][0]) / 2, xs.start + 66)
        level = ys(memory.rate * xs.value(middle))
        yield text("name", middle - 6, level - 6, memory.text)
    start = max(xs.low, ridge)
    if start < xs.high and ys.low < most < ys.high:
        ends = [(xs(start), ys(most)), (xs.end, ys(most))]
        yield path("one", ends, f"{machine.arithmetic.text}: {machine.arithmetic.whose}")
        yield text("name", xs.end, ys(most) - 7, machine.arithmetic.text)


def _point(xs: Log, ys: Log, machine: Machine, item: Timed) -> str:
    rates = f"{quantity(item.done / item.seconds, 'FLOP/s')}, "
    rates += quantity(item.moved / item.seconds, "B/s")
    said = f"{item.name}, {item.evaluation}: {rates}, {machine.share(item):.0%} of the roof"
    x, y = xs(item.intensity), ys(item.done / item.seconds)
    return dot(f"{series(item.number)} full", x, y, said, radius=4.5)


def _way(xs: Log, ys: Log, item: Timed) -> tuple[str, str]:
    """From the baseline, which has the same intensity, to the kernel."""
    x, start, end = xs(item.intensity), ys(item.done / item.before), ys(item.done / item.seconds)
    rate = quantity(item.done / item.before, "FLOP/s")
    return (
        line("way", x, start, x, end),
        dot("from", x, start, f"the baseline of {item.name}: {rate}"),
    )
