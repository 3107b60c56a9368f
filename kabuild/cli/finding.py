"""The findings of ``kabuild doctor``, as values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import Enum, unique

import click


@unique
class State(Enum):
    """What a finding means for judging on this machine."""

    OK = "ok"
    OPTIONAL = "absent"
    WARNING = "warning"
    PROBLEM = "PROBLEM"


@dataclass(frozen=True)
class Finding:
    """One check: what was found, and what to do about it."""

    name: str
    state: State
    found: str
    advice: str = ""


def tell_findings(findings: Sequence[Finding], *, as_json: bool) -> None:
    """Print findings; exit with 36 if one is a problem."""
    if as_json:
        values = [{**asdict(item), "state": item.state.value} for item in findings]
        click.echo(json.dumps(values, indent=2))
    else:
        width = max(len(item.name) for item in findings)
        for item in findings:
            click.echo(f"{item.state.value:7}  {item.name:{width}}  {item.found}")
            if item.advice:
                click.echo(f"{'':7}  {'':{width}}  -> {item.advice}")
    if any(item.state is State.PROBLEM for item in findings):
        raise click.exceptions.Exit(36)
