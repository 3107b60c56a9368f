"""The profile of a model: where its time goes, and what faster parts would gain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from kabuild.neural.step import TrainingStep, render_step
from kabuild.neural.values import count, number, share, text
from kabuild.report.table import text_table
from kabuild.report.times import nanoseconds

SCHEMA = 1
_DEEPEST = 100
_MOST_ROWS = 20_000


@dataclass(frozen=True)
class Row:
    """One part of a model: a single operator, or a group that one kernel could compute.

    Figures are of all calls in one run of the model. ``roof_seconds`` is the least time that the
    machine's bandwidth and throughput allow; ``gain`` is the speedup of the whole model if this
    part took no longer than that, by Amdahl's law.
    """

    name: str
    kind: str
    operators: tuple[str, ...]
    calls: int
    seconds: float
    share: float
    bytes: int
    flops: int
    bound: str
    roof_seconds: float
    roof_share: float
    gain: float
    dtypes: tuple[str, ...]
    shapes: tuple[tuple[tuple[tuple[int, ...], ...], int], ...]
    modules: tuple[str, ...]

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> Self:
        """From JSON. Raises one of MALFORMED for another form."""
        return cls(
            name=text(value["name"]),
            kind=text(value["kind"]),
            operators=tuple(map(text, value["operators"])),
            calls=count(value["calls"]),
            seconds=number(value["seconds"]),
            share=share(value["share"]),
            bytes=count(value["bytes"]),
            flops=count(value["flops"]),
            bound=text(value["bound"]),
            roof_seconds=number(value["roof_seconds"]),
            roof_share=number(value["roof_share"]),
            gain=number(value["gain"]),
            dtypes=tuple(map(text, value["dtypes"])),
            shapes=tuple(
                (tuple(tuple(map(count, shape)) for shape in one["inputs"]), count(one["calls"]))
                for one in value["shapes"]
            ),
            modules=tuple(map(text, value["modules"])),
        )


@dataclass(frozen=True)
class Frame:
    """A module or an operator in the flame graph, with what it calls."""

    name: str
    seconds: float
    children: tuple[Frame, ...]

    @classmethod
    def read(cls, value: Mapping[str, Any], depth: int = 0) -> Self:
        """From JSON. Raises one of MALFORMED for another form."""
        if depth > _DEEPEST:
            raise ValueError("modules are nested too deeply")
        children = tuple(cls.read(child, depth + 1) for child in value["children"])
        return cls(text(value["name"]), number(value["seconds"]), children)


@dataclass(frozen=True)
class Profile:
    """Where the time of a model goes.

    Attributes:
        eager_seconds: of a call of the module.
        graph_seconds: of its operators, one by one; shares are of this.
        training: of a training step; None of a model whose file has no loss.
        facts: all of it, as it was written.
    """

    device: str
    torch: str
    eager_seconds: float
    graph_seconds: float
    bandwidth: float
    throughput: Mapping[str, float] = field(hash=False)
    parts: tuple[Row, ...]
    flame: Frame
    training: TrainingStep | None
    facts: Mapping[str, Any] = field(hash=False, repr=False)

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Self:
        """From JSON. Raises one of MALFORMED for another form."""
        if facts["schema"] != SCHEMA or len(facts["parts"]) > _MOST_ROWS:
            raise ValueError("another schema")
        roofs = facts["roofs"]
        return cls(
            device=text(facts["device"]),
            torch=text(facts["torch"]),
            eager_seconds=number(facts["eager_seconds"]),
            graph_seconds=number(facts["graph_seconds"]),
            bandwidth=number(roofs["bytes_per_second"]),
            throughput={
                text(name): number(peak) for name, peak in roofs["flops_per_second"].items()
            },
            parts=tuple(map(Row.read, facts["parts"])),
            flame=Frame.read(facts["flame"]),
            training=TrainingStep.read(facts["training"]) if facts["training"] else None,
            facts=facts,
        )


def render_profile(profile: Profile, title: str, most: int = 20) -> str:
    """The profile as text: a line for each of the ``most`` largest parts."""
    head = ("part", "calls", "time", "share", "bound", "of roof", "gain", "bytes", "flops")
    rows = [(*head, "inputs"), *(_cells(row) for row in profile.parts[:most])]
    outside = profile.eager_seconds - profile.graph_seconds
    taken = f"{title}: {seconds(profile.eager_seconds)} a call on {profile.device}"
    lines = [
        f"{taken}; its operators, one by one: {seconds(profile.graph_seconds)}",
        *(["most of a call is spent between operators"] if outside > profile.graph_seconds else ()),
        "",
        text_table(rows, right=range(1, len(head))),
    ]
    if len(profile.parts) > most:
        lines.append(f"and {len(profile.parts) - most} more parts; --json has all")
    together = gain_of(profile, profile.parts)
    roofs = ", ".join(f"{quantity(v)}flop/s in {k}" for k, v in profile.throughput.items())
    lines += [
        "",
        f"roofs, measured here: {quantity(profile.bandwidth)}B/s" + (f", {roofs}" if roofs else ""),
        f"gain: the model's speedup if that part reached its roof; all together {together:.2f}x",
    ]
    if profile.training:
        lines += ["", render_step(profile.training, most)]
    return "\n".join(lines)


def gain_of(profile: Profile, rows: Sequence[Row]) -> float:
    """The speedup of the operators' time if all of ``rows`` reached their roofs."""
    if not profile.graph_seconds:
        return 1.0  # it has no operators
    saved = sum(row.seconds - row.roof_seconds for row in rows)
    return profile.graph_seconds / max(profile.graph_seconds - saved, 1e-12)


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.name,
        str(row.calls),
        seconds(row.seconds),
        f"{row.share:.1%}",
        row.bound,
        f"{row.roof_share:.0%}",
        f"{row.gain:.3f}x",
        quantity(row.bytes) + "B",
        quantity(row.flops),
        " ".join(shown(shapes, row.dtypes, calls) for shapes, calls in row.shapes[:2])
        + (f" and {len(row.shapes) - 2} more" if len(row.shapes) > 2 else ""),
    )


def shown(shapes: Sequence[Sequence[int]], dtypes: Sequence[str], calls: int) -> str:
    """The inputs of some calls: ``4*(float32[2,64] int64[2])``."""
    inputs = " ".join(
        f"{dtype}[{','.join(map(str, shape))}]"
        for shape, dtype in zip(shapes, dtypes, strict=False)
    )
    return f"{calls}*({inputs})"


def seconds(value: float) -> str:
    """A time for people."""
    return nanoseconds(value * 1e9)


def quantity(value: float) -> str:
    """``1.5 G``: a number with a prefix for its unit."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {prefix}"
    return f"{value:.3g} "


def frames(flame: Frame) -> Iterator[tuple[int, float, Frame]]:
    """Depth, start in seconds, and frame, of the whole tree."""
    waiting = [(0, 0.0, flame)]
    while waiting:
        depth, start, frame = waiting.pop()
        yield depth, start, frame
        for child in frame.children:
            waiting.append((depth + 1, start, child))
            start += child.seconds
