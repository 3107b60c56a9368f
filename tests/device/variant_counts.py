"""Counts on the CPU what variants of kernels do, for the stage ``modelled`` of ``run_all.sh``.

    python tests/device/variant_counts.py DIRECTORY [TASK...]

Declares a task for each of ``variants.py`` in a copy of the repository, runs ``kabuild analyze`` on
them with waves of 32 lanes, and writes ``DIRECTORY/variants.json``: for each variant and call the
sums that the modelled time is made of. Configs are reduced to ``ELEMENTS`` a tensor. Needs no GPU.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import counted
from analyze.sums import sums
from description import revision
from variants import Variant, variants
from workplace import ROOT, Workplace

FILE = "variants.json"
PACKAGES = "variants"
ELEMENTS = 1 << 17
CONFIGS = 1
_AT_ONCE = 12
_CALL_SECONDS = 15.0
_OF_THE_CPU = re.compile(r"^\[\w+\.platform_configs\]\n.*\Z", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"(?m)^(name +=) .*")
_GATE = "rules/harness/tools/analyze/gate.py"


def declare(workplace: Workplace, chosen: Sequence[Variant]) -> None:
    """Write a task for each variant, with the configs of GPUs."""
    for variant in chosen:
        package = workplace.root / PACKAGES / variant.name
        ignored = shutil.ignore_patterns("solutions")
        shutil.copytree(ROOT / "tasks" / variant.task, package, dirs_exist_ok=True, ignore=ignored)
        build = _OF_THE_CPU.sub("", (package / "BUILD.toml").read_text())
        build = _NAME.sub(rf'\1 "{variant.name}"', build, count=1)
        (package / "BUILD.toml").write_text(build)
        (task,) = next(iter(tomllib.loads(build).values()))
        solution = package / "solutions" / counted.AGENT / task["kernel"]
        solution.parent.mkdir(parents=True)
        solution.write_text(variant.text)


def digest(variant: Variant) -> str:
    """Of the variant's source."""
    return hashlib.sha256(variant.text.encode()).hexdigest()


def in_turns(chosen: Iterable[Variant]) -> list[Variant]:
    """One of each task, then another of each: so that what is counted first is of all tasks."""
    seen: Counter[str] = Counter()
    turns = []
    for variant in chosen:
        turns.append((seen[variant.task], variant))
        seen[variant.task] += 1
    return [variant for _, variant in sorted(turns, key=lambda one: one[0])]


def count(workplace: Workplace, chosen: Sequence[Variant], found: dict[str, Any]) -> Iterator[int]:
    """Add what is counted of each variant, by its name; of those that fail, no calls.

    Yields after each batch how many there are.
    """
    for start in range(0, len(chosen), _AT_ONCE):
        batch = chosen[start : start + _AT_ONCE]
        declare(workplace, batch)
        labels = [f"//{PACKAGES}/{variant.name}" for variant in batch]
        ran = workplace.kabuild("analyze", *labels, f"--agent={counted.AGENT}", "--json", "-j1")
        specs = counted.specs(workplace.root, labels)
        for variant in batch:
            label = f"//{PACKAGES}/{variant.name}"
            calls = ran.json.get(label, {}).get("calls", [])
            found[variant.name] = {
                "task": variant.task,
                "kind": variant.kind,
                "source": digest(variant),
                "spec": specs[label],
                "calls": [sums(call) for call in calls if call["whole"]],
            }
        yield len(found)


def read(directory: Path) -> dict[str, Any]:
    """What ``main`` has left there. Raises OSError and ValueError."""
    found: dict[str, Any] = json.loads((directory / FILE).read_bytes())
    if found.get("warp") != counted.WARP:
        raise ValueError(f"{directory / FILE} does not hold counts of warps of {counted.WARP}")
    return found


def main() -> None:
    """Count all variants, or those of the tasks that are named."""
    if len(sys.argv) < 2:
        raise SystemExit("usage: variant_counts.py DIRECTORY [TASK...]")
    out, tasks = Path(sys.argv[1]), sys.argv[2:]
    out.mkdir(parents=True, exist_ok=True)
    chosen = [variant for variant in variants() if not tasks or variant.task in tasks]
    found: dict[str, Any] = {}
    told = {"revision": revision(), "warp": counted.WARP, "elements": ELEMENTS, "variants": found}
    with tempfile.TemporaryDirectory() as folder:
        workplace = Workplace.copied(Path(folder))
        counted.count_for_warps(workplace)
        _count_larger_calls(workplace.root / _GATE)
        for number in count(workplace, in_turns(chosen), found):
            (out / FILE).write_text(json.dumps(told, sort_keys=True))
            print(f"{number} of {len(chosen)}", flush=True)
    print(f"counted {sum(bool(one['calls']) for one in found.values())} of {len(found)} variants")


def _count_larger_calls(gate: Path) -> None:
    """Have the copy's gate count larger calls, of which each may take less time, and fewer."""
    text = gate.read_text()
    for before, after in (
        ("elements: int = 65536", f"elements: int = {ELEMENTS}"),
        ("call_seconds: float = 60.0", f"call_seconds: float = {_CALL_SECONDS}"),
        ("min(policy.elements, spec.elements)", "policy.elements"),
        ("in spec.configs]", f"in spec.configs[:{CONFIGS}]]"),
    ):
        if before not in text:
            raise SystemExit(f"{gate} has no '{before}'")
        text = text.replace(before, after)
    gate.write_text(text)


if __name__ == "__main__":
    main()
