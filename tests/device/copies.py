"""What a copy of as many bytes takes as the largest config of each expert moves.

    python copies.py PLATFORM OUT.json [TASK...]

Copies are timed as one graph, many in a row, each with other memory, so that no cache holds what is
read. One way is the runtime's, the other a kernel of PyTorch that inverts all bits; the faster one
counts. By task: the bytes that are read and written together, microseconds of a copy, which way it
is, and how far the quartiles are apart.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from roofline import moved
from torch import Tensor
from workplace import ROOT

_MOVED = 400 << 20
"""Bytes that a graph moves, if 64 calls are enough: no cache of an H200 holds half of them."""
_MOST_CALLS = 64
_READINGS = 15
_PACK = 16
_WAYS: Mapping[str, Callable[[Tensor, Tensor], object]] = {
    "runtime": lambda source, target: target.copy_(source),
    "kernel": lambda source, target: torch.bitwise_not(source, out=target),
}


def measure(tasks: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The label of each task that memory bounds, and what was found; all, without ``tasks``."""
    known = {label: size for label, size in moved(ROOT).items() if not tasks or label in tasks}
    sides = [_memory(max(known.values(), default=0)) for _ in range(2)]
    for label, size in known.items():
        yield label, _fastest(size, *sides)


def _memory(largest: int) -> Tensor:
    """One side of the copies of a graph, whatever their size."""
    size = largest + _MOVED
    return torch.zeros(size // _PACK * _PACK // 4, dtype=torch.int32, device="cuda")


def _fastest(size: int, source: Tensor, target: Tensor) -> dict[str, Any]:
    words = size // 2 // _PACK * _PACK // 4
    calls = max(2, min(_MOST_CALLS, -(-_MOVED // size)))
    pairs = [
        tuple(side[number * words : (number + 1) * words] for side in (source, target))
        for number in range(calls)
    ]
    found = {name: _readings_us(way, pairs) for name, way in _WAYS.items()}
    name = min(found, key=lambda way: statistics.median(found[way]))
    low, middle, high = statistics.quantiles(found[name], n=4)
    return {
        "bytes": size,
        "copy_us": round(middle, 2),
        "by": name,
        "apart": round((high - low) / middle, 4),
    }


def _readings_us(way: Callable[[Tensor, Tensor], object], pairs: Any) -> list[float]:
    """Of one copy, each reading a run of the graph."""
    cuda: Any = torch.cuda
    stream = cuda.Stream()
    with cuda.stream(stream):
        way(*pairs[0])
    cuda.synchronize()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph, stream=stream):
        for pair in pairs:
            way(*pair)
    graph.replay()
    found = []
    for _ in range(_READINGS):
        first, last = (cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        graph.replay()
        last.record()
        cuda.synchronize()
        found.append(1e3 * first.elapsed_time(last) / len(pairs))
    return found


def main() -> None:
    """Write what was found, after each task."""
    _, out, *tasks = sys.argv[1:]
    found: dict[str, Any] = {}
    for label, row in measure(tasks):
        found[label] = row
        Path(out).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
