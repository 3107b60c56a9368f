"""Hidden configs: drawn from the shape space, the same for everyone with the same salt.

Eight draws, one for each slot of ``CLASSES`` (two of them twice), by rejection sampling: a proposal
counts only if it lies in the space, keeps every tensor under the cap, is not a visible or earlier
config, and belongs to its class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from terms.dtypes import ELEMENT, FLOATING

from base import scalar_ranges, shapes
from base.program import Config, Signature
from base.seeds import Stream
from base.spec import Space, Spec, config_name, largest_tensor

VERSION = 2
ATTEMPTS = 200
TILE = 16
_PASSES = 8
_NEAR = 300  # how far a dim may be moved to satisfy a condition
ASYMMETRY = 16
CLASSES = (
    "edge",
    "scale_up",
    "scale_down",
    "misaligned",
    "misaligned",
    "asymmetric",
    "production",
    "production",
)
SHIFTS = (
    *("default", "below", "negative", "rows", "scaled_up", "ordered", "spikes", "opposed"),
    *("default", "sparse", "positive", "scaled_down"),
)
"""The value shifts of successive configs, starting anywhere: any eight in a row include a
``default``, the task's own values."""
_PRODUCTION = (
    *(1 << power for power in range(25)),
    *(48, 80, 96, 160, 192, 320, 384, 640, 768, 1280, 1536, 1792, 2560, 2880, 3072, 3584),
    *(5120, 5376, 6144, 6656, 7168, 8960, 10240, 11008, 12288, 13824, 14336, 18432, 28672),
    *(32000, 50304, 128256, 151936),
)

Dims = dict[str, int]
Point = tuple[str, tuple[tuple[str, int], ...]]


@dataclass(frozen=True)
class Drawn:
    """A hidden config, its class, and the distribution of its inputs."""

    config: Config
    class_: str
    distribution: str


@dataclass(frozen=True)
class Draw:
    """The result of sampling: ``missing`` names the classes that do not fit into the space."""

    configs: tuple[Drawn, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True)
class Ground:
    """Where configs are drawn: the space under its caps, around the visible configs.

    Attributes:
        elements: cap on every tensor.
        extent: cap on every dim, unless the space or a visible config has more.
    """

    signature: Signature
    space: Space
    elements: int
    visible: tuple[Config, ...]
    extent: int = 1 << 28

    @classmethod
    def of(cls, spec: Spec) -> Ground:
        """The ground of a task.

        If fixed axes, as of weights, make a tensor of every visible config larger than the cap, the
        cap becomes the smallest of these tensors; otherwise no config would be under it. A config
        without a valid shape does not count; admission names it.
        """
        shown: list[int] = []
        for config in spec.configs:
            with suppress(shapes.ShapeError):
                shown.append(largest_tensor(spec.signature, config.dims))
        elements = max(spec.elements, min(shown, default=0))
        return cls(spec.signature, spec.space, elements, spec.configs, spec.extent)

    def identity(self) -> str:
        """Everything besides the salt that determines the drawn configs, as text."""
        signature, space = self.signature, self.space
        tensors = [(a.name, a.dtype, a.shape) for a in (*signature.inputs, *signature.outputs)]
        bounds = [(name, tuple(space.dims[name])) for name in signature.dims]
        more = (signature.updates, space.where) if signature.updates or space.where else ()
        visible = sorted(_point(config.dtype, config.dims) for config in self.visible)
        caps = (self.elements, self.extent)
        told = (tensors, signature.scalars, bounds, space.dtypes, caps, visible)
        varied = tuple(sorted(space.scalars.items()))
        return repr((*told, *more, *varied))

    def fits(self, dims: Mapping[str, int]) -> bool:
        """Whether ``dims`` is in the space and nothing exceeds a cap."""
        return self.space.contains(dims) and self.holds(dims)

    def holds(self, dims: Mapping[str, int]) -> bool:
        """Whether ``dims`` is within bounds and caps, ignoring conditions."""
        if not self.space.bounds(dims):
            return False
        if any(value > self.largest(name) for name, value in dims.items()):
            return False
        try:
            return 0 < largest_tensor(self.signature, dims) <= self.elements
        except shapes.ShapeError:
            return False

    def largest(self, name: str) -> int:
        """The largest value that a drawn config may give one dim."""
        return max(self.space.dims[name][0], self.extent, self.largest_visible(name))

    def least(self) -> Dims:
        """The point of the space with the smallest dims."""
        return {name: low for name, (low, _) in self.space.dims.items()}

    def reach(self, name: str, others: Mapping[str, int]) -> int:
        """The largest value of a dim that fits with ``others``; its minimum if none does."""
        low, high = self.space.dims[name]
        while low < high:
            middle = (low + high + 1) // 2
            if self.holds({**others, name: middle}):
                low = middle
            else:
                high = middle - 1
        return low

    def largest_visible(self, name: str) -> int:
        """The largest value that a visible config gives one dim."""
        return max(config.dims[name] for config in self.visible)

    def free(self) -> list[str]:
        """The dims that have more than one value."""
        return [name for name, (low, high) in self.space.dims.items() if low < high]


def draw(ground: Ground, salt: str, cycles: int = 1) -> Draw:
    """``cycles`` times eight unseen configs, with dtypes and value shifts in rotation.

    Depends only on the salt, the ground and this sampler's version.
    """
    stream = Stream("sampler", VERSION, salt, ground.identity())
    dtypes = ground.space.dtypes
    absent = _left_out(ground)
    shifts = SHIFTS if _has_floating_input(ground.signature) else SHIFTS[:1]
    taken = {_point(config.dtype, config.dims) for config in ground.visible}
    first_dtype, first_shift = stream.below(len(dtypes)), stream.below(len(shifts))
    configs: list[Drawn] = []
    missing: list[str] = []
    for index, class_ in enumerate(CLASSES * cycles):
        dtype = dtypes[(first_dtype + index) % len(dtypes)]
        dims = _draw_one(class_, dtype, ground, taken, stream)
        if dims is None:
            missing.append(class_)
            continue
        taken.add(_point(dtype, dims))
        none = absent[index % len(absent)]
        scalars = scalar_ranges.drawn(ground.space.scalars, stream)
        name = config_name(dtype, dims, none, scalars)
        config = Config(name, dims, dtype, {**dict(ground.signature.scalars), **scalars}, none)
        configs.append(Drawn(config, class_, shifts[(first_shift + index) % len(shifts)]))
    return Draw(tuple(configs), tuple(sorted(set(missing))))


def _left_out(ground: Ground) -> list[tuple[str, ...]]:
    """The sets of optional tensors that visible configs leave out."""
    return list(dict.fromkeys(config.absent for config in ground.visible)) or [()]


def belongs(class_: str, dims: Mapping[str, int], ground: Ground) -> bool:
    """Whether ``dims`` belongs to ``class_``."""
    return _PREDICATES[class_](dims, ground)


def filled(ground: Ground, stream: Stream, choose: Callable[[str, int, int], int]) -> Dims:
    """Dims chosen one at a time, in random order, each within the remaining room."""
    dims = ground.least()
    names = list(dims)
    while names:
        name = names.pop(stream.below(len(names)))
        low, high = ground.space.dims[name][0], ground.reach(name, dims)
        dims[name] = min(max(choose(name, low, high), low), high)
    return dims


def settled(ground: Ground, dims: Dims) -> Dims:
    """Dims near the given ones that satisfy the conditions of the space, if found.

    One dim at a time is moved to the nearest value that satisfies one more condition.
    """
    found = dict(dims)
    for _ in range(_PASSES):
        broken = [text for text in ground.space.where if not shapes.holds(text, found)]
        if not broken:
            break
        for text in broken:
            _mend(ground, found, text)
    return found


def _mend(ground: Ground, dims: Dims, text: str) -> None:
    """Move one dim of a condition so that the condition holds, if that is possible."""
    for distance in range(1, _NEAR):
        for name in sorted(shapes.condition_names(text)):
            low, high = ground.space.dims[name]
            for value in (dims[name] - distance, dims[name] + distance):
                if low <= value <= high and shapes.holds(text, {**dims, name: value}):
                    dims[name] = value
                    return


def _draw_one(
    class_: str, dtype: str, ground: Ground, taken: set[Point], stream: Stream
) -> Dims | None:
    for _ in range(ATTEMPTS):
        dims = settled(ground, _PROPOSALS[class_](ground, stream))
        new = _point(dtype, dims) not in taken
        if new and ground.fits(dims) and belongs(class_, dims, ground):
            return dims
    return None


def _point(dtype: str, dims: Mapping[str, int]) -> Point:
    return dtype, tuple(sorted(dims.items()))


def _has_floating_input(signature: Signature) -> bool:
    return any(argument.dtype in {ELEMENT, *FLOATING} for argument in signature.inputs)


def _edge(ground: Ground, stream: Stream) -> Dims:
    free = ground.free()
    pinned = {name for name in free if stream.below(2)} or set(free)

    def choose(name: str, low: int, high: int) -> int:
        if name in pinned:
            return high if stream.below(3) == 0 else low
        return stream.spread(low, high)

    return filled(ground, stream, choose)


def _scale_up(ground: Ground, stream: Stream) -> Dims:
    base = stream.choice(ground.visible).dims
    grown = {name for name in ground.free() if stream.below(2)} or set(ground.free())

    def choose(name: str, _low: int, high: int) -> int:
        largest = ground.largest_visible(name)
        if name not in grown or largest >= high:
            return base[name]
        return stream.between(largest + 1, min(8 * largest, high) if largest else high)

    return filled(ground, stream, choose)


def _scale_down(ground: Ground, stream: Stream) -> Dims:
    base = stream.choice(ground.visible).dims
    divisors = {name: stream.choice((1, 2, 4, 8, 16)) for name in base}
    return filled(ground, stream, lambda name, _low, _high: base[name] // divisors[name])


def _misaligned(ground: Ground, stream: Stream) -> Dims:
    def choose(_name: str, low: int, high: int) -> int:
        value = stream.spread(low, high)
        return value if value % TILE else value + stream.choice((-1, 1))

    return filled(ground, stream, choose)


def _asymmetric(ground: Ground, stream: Stream) -> Dims:
    free = ground.free()
    long = stream.choice(free) if free else ""
    others = {
        name: stream.between(low, max(low, min(ASYMMETRY, high)))
        for name, (low, high) in ground.space.dims.items()
    }
    if not free:
        return others
    reach = ground.reach(long, others)
    least = max(reach // 4, ground.space.dims[long][0])
    return {**others, long: stream.between(least, reach)}


def _production(ground: Ground, stream: Stream) -> Dims:
    def choose(_name: str, low: int, high: int) -> int:
        usual = [value for value in _PRODUCTION if low <= value <= high]
        return stream.choice(usual) if usual else stream.between(low, high)

    return filled(ground, stream, choose)


def _is_edge(dims: Mapping[str, int], ground: Ground) -> bool:
    return any(
        dims[name] in {ground.space.dims[name][0], 1} or _is_top(name, dims, ground)
        for name in ground.free()
    )


def _is_top(name: str, dims: Mapping[str, int], ground: Ground) -> bool:
    return dims[name] == ground.reach(name, dims)


def _is_scale_up(dims: Mapping[str, int], ground: Ground) -> bool:
    return any(value > ground.largest_visible(name) for name, value in dims.items())


def _is_scale_down(dims: Mapping[str, int], ground: Ground) -> bool:
    return any(
        dims != base and all(value <= base[name] for name, value in dims.items())
        for base in (dict(config.dims) for config in ground.visible)
    )


def _is_misaligned(dims: Mapping[str, int], ground: Ground) -> bool:
    return any(dims[name] % TILE for name in ground.free() if dims[name] > 1)


def _is_asymmetric(dims: Mapping[str, int], ground: Ground) -> bool:
    free = [max(dims[name], 1) for name in ground.free()]
    return len(free) > 1 and max(free) >= ASYMMETRY * min(free)


def _is_production(dims: Mapping[str, int], ground: Ground) -> bool:
    return all(dims[name] in _PRODUCTION for name in ground.free())


_PROPOSALS: Mapping[str, Callable[[Ground, Stream], Dims]] = {
    "edge": _edge,
    "scale_up": _scale_up,
    "scale_down": _scale_down,
    "misaligned": _misaligned,
    "asymmetric": _asymmetric,
    "production": _production,
}
_PREDICATES: Mapping[str, Callable[[Mapping[str, int], Ground], bool]] = {
    "edge": _is_edge,
    "scale_up": _is_scale_up,
    "scale_down": _is_scale_down,
    "misaligned": _is_misaligned,
    "asymmetric": _is_asymmetric,
    "production": _is_production,
}
