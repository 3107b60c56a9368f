"""python -m tests.hostile [--inputs=N] [--kinds=a,b] [--seed=TEXT] [--case=KIND:NUMBER]..."""

from __future__ import annotations

import argparse
import contextlib
import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.hostile.campaign import Campaign, show
from tests.hostile.kinds import KINDS


def cases(inputs: int, kinds: list[str]) -> Iterator[tuple[str, int]]:
    """So many cases, each kind by its share, spread evenly."""
    kinds = [kind for kind in kinds if KINDS[kind].share]
    total = sum(KINDS[kind].share for kind in kinds)
    made = dict.fromkeys(kinds, 0)
    for count in range(1, inputs + 1):
        kind = max(kinds, key=lambda kind: count * KINDS[kind].share / total - made[kind])
        yield kind, made[kind]
        made[kind] += 1


def kills(count: int) -> Iterator[tuple[str, int]]:
    """So many builds that are killed."""
    return (("kills", number) for number in range(count))


def main() -> int:
    """Run what the command line says; 1 when anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile")
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=1000, help="how many more are killed")
    parser.add_argument("--kinds", default=",".join(KINDS), help="which of: %(default)s")
    parser.add_argument("--seed", default=secrets.token_hex(4), help="of a run to see again")
    parser.add_argument("--case", action="append", default=[], help="KIND:NUMBER of that run")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--log", type=Path, help="write findings to this file, as JSON lines")
    asked = parser.parse_args()
    chosen = [tuple(text.split(":")) for text in asked.case]
    todo = [(kind, int(number)) for kind, number in chosen]
    todo = todo or [*cases(asked.inputs, asked.kinds.split(",")), *kills(asked.kills)]
    print(f"seed {asked.seed}")
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(asked.log.open("a")) if asked.log else None
        log = sys.stdout if chosen and log is None else log
        campaign = Campaign(asked.seed, todo, log)
        tally = campaign.run(1 if chosen else asked.jobs)
    show(tally, time.monotonic() - began)
    return 1 if tally.found else 0


if __name__ == "__main__":
    sys.exit(main())
