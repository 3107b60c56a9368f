"""The order of a session: ``agent.json``, with this machine's paths instead of tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True)
class Definition:
    """An agent, as declared in its BUILD.toml; see the rule ``agent``.

    ``seconds`` is its wall time. ``turns``, ``tokens`` and ``dollars`` are budgets, enforced if it
    reports usage; 0 means none. ``cli`` is the directory of its command line. ``resumes`` says that
    it keeps a journal.
    """

    command: Sequence[str]
    service: Sequence[str]
    version_command: Sequence[str]
    secrets: Sequence[str]
    hosts: Sequence[str]
    prompt_by: str
    model: str
    network: str
    seconds: float
    turns: int
    tokens: int
    dollars: float
    version: str
    adapter: str
    env: Mapping[str, str] = field(hash=False)
    cli: str = ""
    resumes: bool = False


@dataclass(frozen=True)
class Counting:
    """How ``kabuild-check --analyze`` compiles, and the specification of its gate.

    ``outputs`` are made besides the artifact. ``ranks`` is the architecture of this session whose
    times are modelled from counts; empty for none.
    """

    compile: Sequence[str]
    outputs: Sequence[str]
    spec: Mapping[str, Any] = field(hash=False)
    ranks: str = ""


@dataclass(frozen=True)
class Checking:
    """How ``kabuild-check`` compiles, the artifact, and the specification of each gate.

    ``counting`` is None if accesses cannot be counted.
    """

    compile: Sequence[str]
    artifact: str
    specs: Mapping[str, Mapping[str, Any]] = field(hash=False)
    counting: Counting | None = None


@dataclass(frozen=True)
class Order:
    """One trial of one agent at one task. ``memory`` is in bytes."""

    name: str
    agent: Definition
    kernel: str
    trial: int
    run: int
    memory: int
    check: Checking

    @property
    def seed(self) -> int:
        """The seed of a seeded agent: different in every trial and every run."""
        return self.run * 1_000_003 + self.trial


def read_order(path: Path, homes: Iterable[str]) -> Order:
    """The order in ``path``; ``homes`` are NAME=DIRECTORY for ``${toolchain:NAME}``.

    Raises ValueError, KeyError or TypeError for a malformed one, which is a bug of the rule.
    """
    text = path.read_text()
    for home in homes:
        name, _, directory = home.partition("=")
        # within a JSON string, hence escaped
        text = text.replace(f"${{toolchain:{name}}}", json.dumps(directory)[1:-1])
    value = json.loads(text)
    if value["schema"] != 1:
        raise ValueError(f"not an order of schema 1: {path}")
    given = {item.name: value[item.name] for item in fields(Order)}
    given["agent"] = Definition(**value["agent"])
    check = dict(value["check"])
    if check.get("counting"):
        check["counting"] = Counting(**check["counting"])
    given["check"] = Checking(**check)
    return Order(**given)


def fill(template: str, variables: Mapping[str, str]) -> str:
    """``template`` with ``{name}`` replaced if ``variables`` has that name."""
    return _PLACEHOLDER.sub(lambda match: variables.get(match[1], match[0]), template)
