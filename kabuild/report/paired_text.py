"""A comparison of two agents, for people."""

from __future__ import annotations

from collections.abc import Iterator

from kabuild.base.listing import abridged
from kabuild.base.printing import escaped
from kabuild.model.speedup import Speedup
from kabuild.report.judgement import WIDE
from kabuild.report.paired import FEWEST, Comparison, Figures, Pair
from kabuild.report.table import text_table

_MARKS = {0: "=", 1: "+", 2: "-"}
_UNKNOWN = "-"  # a figure that was not measured


def render_comparison(found: Comparison) -> str:
    """A line for each pair, the totals, and the trials outside all pairs."""
    sections = (_table(found), list(_figures(found)), list(_left_out(found)))
    return escaped("\n\n".join("\n".join(lines) for lines in sections if lines))


def _table(found: Comparison) -> list[str]:
    if not found.pairs:
        return []
    rows = [("task", *found.names, "ratio"), *(_cells(found, pair) for pair in found.pairs)]
    return [text_table(rows, right={1, 2})]


def _cells(found: Comparison, pair: Pair) -> tuple[str, str, str, str]:
    figures = (pair.one, pair.one_right), (pair.other, pair.other_right)
    one, other = (_told(x if found.timed else None, right) for x, right in figures)
    known = found.timed and pair.right
    ratio = f"{pair.speedup if known else _UNKNOWN} {_MARKS[pair.winner]}"
    if pair.only_right:
        ratio += f"  only {found.names[pair.only_right - 1]} is right"
    if pair.tier:
        ratio += f"  tier {pair.tier}"
    return pair.task, one, other, ratio


def _told(figure: Speedup | None, right: float) -> str:
    """``1.52x ±2 %``, or a dash without a figure; with the share of correct trials."""
    if not right:
        return f"failed ({Speedup(figure.value)})" if figure else "failed"
    told = str(figure or _UNKNOWN)
    return told if right == 1.0 else f"{told} ({right:.0%} right)"


def _figures(found: Comparison) -> Iterator[str]:
    shown = [one for one in (found.figures, *found.apart) if one.tasks]
    for figures in shown or [found.figures]:
        yield from _of_tier(found, figures)
    if found.timed and any(one.wide for pair in found.pairs for one in _shown(pair)):
        yield WIDE
    if found.timed and any(pair.only_right for pair in found.pairs):
        yield "if only one is right, it wins, and its ratio counts as at least 1.00x"
    for name, costs in zip(found.names, found.costs, strict=True):
        if costs:
            told = ", ".join(f"{value:g} {unit}" for unit, value in costs.items())
            yield f"all sessions of {name}: {told}"
    for name, ended in zip(found.names, found.ended, strict=True):
        for end in dict.fromkeys(ended.values()):
            where = abridged([label for label, how in ended.items() if how == end])
            yield f"{name}: {end} ({where})"


def _shown(pair: Pair) -> tuple[Speedup, ...]:
    return pair.one, pair.other, pair.speedup


def _of_tier(found: Comparison, figures: Figures) -> Iterator[str]:
    """The totals of the tasks of one tier."""
    one, other = found.names
    of = f", tier {figures.tier}" if figures.tier else ""
    if figures.ratio is None:
        yield f"{one} / {other}: nothing to compare, since no task of both was judged"
        return
    ratio = _ratio(figures, timed=found.timed)
    yield f"{one} / {other}{of}: {ratio} ({_sureness(figures)})"
    counts = (("win", figures.wins), ("loss", figures.losses), ("tie", figures.ties))
    told = ", ".join(_counted(number, noun) for noun, number in counts)
    yield f"{told}; sign test p = {figures.p_value:.3g}"


def _ratio(figures: Figures, *, timed: bool) -> str:
    """The ratio of all tasks with its interval; a dash if nothing was timed."""
    if not timed or figures.ratio is None:
        return _UNKNOWN
    if not figures.low or not figures.high:
        return f"{Speedup(figures.ratio)}, 95 % interval unknown"
    speedup = Speedup.around(figures.ratio, figures.low, figures.high)
    assert speedup.ends is not None
    return f"{speedup}, 95 % interval {speedup.ends[0]:.3g} to {speedup.ends[1]:.3g}"


def _sureness(figures: Figures) -> str:
    if figures.tasks < FEWEST:
        are = "is" if figures.tasks == 1 else "are"
        return f"{_counted(figures.tasks, 'task')} {are} too few to be sure"
    return "significant" if figures.significant else "not significant"


def _left_out(found: Comparison) -> Iterator[str]:
    """Trials that are excluded from all figures, by name."""
    if found.pairs and not found.timed:
        yield "nothing was timed: no gate that times was requested, so only correctness counts"
    for name, missing in zip(found.names, found.unjudged, strict=True):
        if missing:
            told = ", ".join([f"{label} ({why})" for label, why in missing.items()])
            yield f"not judged of {name}, excluded from all figures: {told}"
    if found.unpaired:
        yield f"in one of them only, excluded from all figures: {', '.join(found.unpaired)}"


def _counted(number: int, noun: str) -> str:
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"
