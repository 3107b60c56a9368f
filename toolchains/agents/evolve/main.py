"""The agent ``evolve``: searches for a faster kernel with a model behind an endpoint.

    main.py KERNEL --endpoint=https://api.anthropic.com --protocol=anthropic --model=NAME

Runs in a session of kabuild, in its working directory. See README.md beside this file.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import amdahl
import kabuild_check
from amdahl import SharesError
from budget import Budget, Limits, Prices
from endpoint import Address, Endpoint, Patience
from journal import Journal
from judging import Judge
from model import Model
from modelled_times import Ranking
from prompts import Task
from protocols import PROTOCOLS
from search import End, Search, Settings
from transcript import Transcript

ASKING = 0.9
"""The share of the wall time for questions; the rest is for judging the last answers."""

EXIT_CODES = {"finished": 0, "budget": 0}
_FAILED = 1


def main(arguments: Sequence[str]) -> int:
    """The command line. Returns 0 if the search finished or used up a budget."""
    parser = _parser()
    options = parser.parse_args(arguments)
    started = time.monotonic()
    try:
        task = Task.read(options.kernel.parent, options.kernel.name)
        limits = _limits(options, task.name)
    except (OSError, ValueError, SharesError) as error:
        parser.error(str(error))
    journal = Journal(options.journal, lambda: time.monotonic() - started)
    budget = Budget(limits, Prices(*options.prices))
    transcript = Transcript()
    endpoint = Endpoint(_address(options), _patience(options), seed=options.seed)
    search = Search(
        task,
        options.kernel.read_text(),
        _settings(options),
        model=Model(endpoint, journal, budget, options.parallel, transcript.usage),
        judge=Judge(kabuild_check.check, journal, options.measure_seconds),
        ranking=Ranking(kabuild_check.rank, journal),
        journal=journal,
        transcript=transcript,
        exceeded=lambda: budget.exceeded(journal.seconds),
        hand_in=lambda text: write(options.kernel, text),
    )
    end = search.run()
    if end.state == "failed" and options.outage == "no-result":
        end = End("unavailable", end.message)
    figures = {
        **search.figures(),
        "retries": endpoint.retries,
        "asked": endpoint.asked,
        "seconds": round(journal.seconds, 3),
        "seconds_before": round(journal.seconds_before, 3),
    }
    transcript.usage(budget.usage())
    transcript.end(end.state, end.message, figures)
    if end.message:
        print(end.message, file=sys.stderr)
    return EXIT_CODES.get(end.state, _FAILED)


def write(kernel: Path, text: str) -> None:
    """Replace the kernel's file atomically."""
    temporary = kernel.with_name(f".{kernel.name}.{secrets.token_hex(4)}")
    temporary.write_text(text)
    temporary.replace(kernel)


def _limits(options: argparse.Namespace, task: str) -> Limits:
    """The budgets, with this kernel's part of the turns. Raises SharesError, OSError."""
    turns = options.turns
    if options.shares is not None:
        parts = amdahl.read_shares(options.shares)
        if task not in {part.name for part in parts}:
            known = ", ".join(part.name for part in parts)
            raise SharesError(f"{options.shares.name} has no share for '{task}', only for {known}")
        if not turns:
            raise SharesError("--shares divides a number of turns: give --turns, too")
        turns = max(1, amdahl.allot(parts, turns)[task])
    return Limits(turns, options.tokens, options.dollars, ASKING * options.seconds)


def _address(options: argparse.Namespace) -> Address:
    key = os.environ.get(options.key, "") if options.key else ""
    return Address(options.endpoint, options.protocol, options.proxy, key, options.authorities)


def _patience(options: argparse.Namespace) -> Patience:
    return Patience(options.attempts, options.timeout, options.backoff)


def _settings(options: argparse.Namespace) -> Settings:
    return Settings(
        options.model,
        options.seed,
        options.reply_tokens,
        options.population,
        options.parallel,
        options.generations,
        soft=options.soft == "on",
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="searches for a faster kernel with a model")
    parser.add_argument("kernel", type=Path)
    model = parser.add_argument_group("the model")
    model.add_argument(
        "--endpoint", required=True, help="the model's address, such as http://HOST:PORT"
    )
    model.add_argument("--protocol", choices=sorted(PROTOCOLS), required=True)
    model.add_argument("--model", required=True, help="the model's name at the endpoint")
    model.add_argument("--key", default="", help="the environment variable that has its key")
    model.add_argument("--proxy", default="", help="the proxy for all addresses but the loopback")
    model.add_argument("--authorities", type=Path, help="a file of certificates to trust")
    model.add_argument(
        "--reply_tokens", type=_natural, default=0, help="the most tokens of a reply"
    )
    model.add_argument(
        "--attempts", type=_positive, default=5, help="the most attempts at one question"
    )
    model.add_argument("--timeout", type=float, default=600.0, help="seconds to wait for an answer")
    model.add_argument(
        "--backoff", type=float, default=1.0, help="seconds before the second attempt"
    )
    model.add_argument(
        "--outage",
        choices=("failed", "no-result"),
        default="failed",
        help="how to report an unreachable model: as the run's end, or as no run",
    )
    search = parser.add_argument_group("the search")
    search.add_argument("--seed", type=int, default=1)
    search.add_argument("--population", type=_positive, default=4)
    search.add_argument("--parallel", type=_positive, default=4, help="parallel proposals")
    search.add_argument("--generations", type=_positive, default=10, help="at most")
    search.add_argument(
        "--soft", choices=("on", "off"), default="on", help="whether the model reviews proposals"
    )
    search.add_argument("--measure_seconds", type=float, default=0.0, help="of one, about")
    search.add_argument("--journal", type=Path, default=Path("journal.jsonl"))
    search.add_argument(
        "--shares", type=Path, help="a file of each task's share of the time; divides --turns"
    )
    budget = parser.add_argument_group("budgets; 0 means no limit")
    budget.add_argument("--seconds", type=float, default=0.0)
    budget.add_argument("--turns", type=_natural, default=0)
    budget.add_argument("--tokens", type=_natural, default=0)
    budget.add_argument("--dollars", type=float, default=0.0)
    budget.add_argument(
        "--prices",
        type=_prices,
        default=(0.0, 0.0, 0.0),
        help="dollars per million tokens, as SENT,CACHED,RECEIVED",
    )
    return parser


def _natural(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{value} is less than 0")
    return value


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is less than 1")
    return value


def _prices(text: str) -> tuple[float, float, float]:
    sent, cached, received = map(float, text.split(","))
    if min(sent, cached, received) < 0:
        raise argparse.ArgumentTypeError("a price is less than 0")
    return sent, cached, received


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
