"""Actions: single commands, with everything that may change their results.

An action reads artifacts, which are named before they exist, and runs with toolchains, which are
pinned by content. Users declare targets (``target.py``); rules turn them into actions, and
``graph.py`` orders these.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kabuild.model.label import Label
from kabuild.model.platform import Platform

VERDICT_FILE = "verdict.json"

MNEMONIC = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")

DECLARED_WRONGLY = 4
"""The exit code of a gate that finds the task itself broken; nothing was judged.

The last line of its stderr is a message for people; paths in it are those of its inputs.
"""

AGENT_FACTS = "agent.json"
"""The facts of an agent's session, which reports show beside the results of its task."""

TRANSCRIPT = "transcript.jsonl"
"""What an agent said and did."""

OUTPUT_ROOT = "out"
"""The directory for outputs, below the working directory."""


Root = str
"""``workspace``, ``builtin``, ``kabuild``, ``user``, or ``@`` and the name of a repository."""


@dataclass(frozen=True, order=True)
class Source:
    """A file or directory of the user or of kabuild.

    ``root`` says what ``path`` is relative to: the workspace, the rules and toolchains that ship
    with kabuild, kabuild's own package, (``user``) an absolute path from the command line, or
    (``@name``) the checkout of an external repository. A directory is taken whole, except
    ``__pycache__`` and ``.git`` in it.
    """

    path: str
    root: Root = "workspace"


@dataclass(frozen=True, order=True)
class Output:
    """A file or directory that an action will make: ``path`` below its ``out/``."""

    producer: str
    path: str


@dataclass(frozen=True, order=True)
class Literal:
    """Bytes that a rule computed, such as a judge's specification."""

    data: bytes


Artifact = Source | Output | Literal


@dataclass(frozen=True)
class Toolchain:
    """Tools by role, pinned by content.

    ``fingerprint`` (canonical JSON) is in the key of every action that uses the toolchain. The
    place of its files on this machine is not: equal content is the same toolchain.

    Attributes:
        name: its NAME in ``${toolchain:NAME}`` in an argv.
        role: what rules ask for, such as ``python`` or ``hip-compiler``.
        fingerprint: identifies the content.
        home: absolute host path that replaces the token.
        mounts: absolute host directories that the sandbox shows, read-only.
    """

    name: str
    role: str
    fingerprint: bytes
    home: str = field(compare=False)
    mounts: tuple[str, ...] = field(compare=False, default=())


@dataclass(frozen=True)
class Limits:
    """What an action may use. In the key: a pass under a long limit must not hide a short one.

    Times in seconds, sizes in bytes. ``scratch`` bounds everything the action writes.
    """

    timeout: float = 120.0
    memory: int = 8 << 30
    processes: int = 256
    scratch: int = 1 << 30


@dataclass(frozen=True)
class Resources:
    """What an action occupies while it runs; the scheduler never assigns it twice.

    ``cpus`` counts slots; 0 means all of them. ``lease`` names what is held exclusively, across
    processes too: ``cpu`` is all of the machine to measure on, the name of another platform is one
    of its devices; empty means nothing. ``timed``: the action measures times, so no other process
    may compute on its device meanwhile, with or without a lease.
    """

    cpus: int = 1
    lease: str = ""
    timed: bool = False


@dataclass(frozen=True)
class Name:
    """The name of a user's file in the messages of an action.

    Actions see files under fixed names, so that equal files have equal keys whatever their names.
    ``lines`` is an output with a JSON list: for each line of what the action saw, the line of
    ``file``; None if these are the same.
    """

    name: str
    file: Artifact
    lines: Output | None = None


@dataclass(frozen=True)
class Action:
    """One command with everything that may change its result; its digest is its key.

    In the key: ``argv`` and ``env`` (what runs), ``inputs`` (what it reads), ``outputs``
    (what counts of what it writes), the fingerprints of ``toolchains`` (what it runs
    with), ``platform`` (where), ``limits`` (how much it may use), ``network`` and ``secrets``
    (what it reaches, with which credentials).

    Outside the key: ``label`` and ``mnemonic`` (display), ``gate`` and ``requires`` (order),
    ``resources`` (scheduling), ``preload`` (a warm start that gives the same bytes), ``journal``
    (what an interrupted run of the same key had found out), ``names`` (how messages are shown),
    ``advice`` (a hint), ``sandboxed`` (actions without a sandbox have other keys anyway).

    Attributes:
        label: the sub-target that this action is; unique in a graph.
        inputs: (path below the working directory, artifact), sorted by path.
        outputs: paths below ``out/``; files or directories.
        gate: the gate whose verdict this action writes to ``out/verdict.json``, or ``""``.
        requires: gates that must have passed, else this action is skipped.
        preload: Python modules that a warm process may have imported already.
        nestable: whether the command puts its own processes into inner sandboxes.
        network: whether it has this machine's network; without it, it has none.
        secrets: variables of the user's environment that it gets. Their names are in the key;
            their values are never stored.
        facts: an output with a JSON object that reports may show, or ``""``. It also says whether
            the program that the command runs failed; if the command fails, the machine is at fault.
        journal: whether it has the file ``/journal``, empty at first, which it may write. The next
            run of the same action gets what an interrupted run has written.
        advice: what to do if one of its sources is missing.
        names: the names of the user's files in its messages.
        sandboxed: whether it never runs without a sandbox, like the session of an agent, which
            runs foreign programs at fixed paths.
    """

    label: Label
    argv: tuple[str, ...]
    inputs: tuple[tuple[str, Artifact], ...]
    outputs: tuple[str, ...]
    platform: Platform
    env: tuple[tuple[str, str], ...] = ()
    toolchains: tuple[Toolchain, ...] = ()
    limits: Limits = Limits()
    mnemonic: str = field(compare=False, default="Run")
    gate: str = field(compare=False, default="")
    requires: tuple[Label, ...] = field(compare=False, default=())
    resources: Resources = field(compare=False, default=Resources())
    preload: tuple[str, ...] = field(compare=False, default=())
    nestable: bool = field(compare=False, default=False)
    network: bool = False
    secrets: tuple[str, ...] = ()
    facts: str = field(compare=False, default="")
    journal: bool = field(compare=False, default=False)
    sandboxed: bool = field(compare=False, default=False)
    names: tuple[Name, ...] = field(compare=False, default=())
    advice: str = field(compare=False, default="")

    def __post_init__(self) -> None:
        if not MNEMONIC.fullmatch(self.mnemonic):
            msg = f"{self.label} has the mnemonic {self.mnemonic!r}: one word was expected"
            raise ValueError(msg)
        object.__setattr__(self, "inputs", tuple(sorted(self.inputs, key=lambda item: item[0])))
        object.__setattr__(self, "env", tuple(sorted(self.env)))

    def output(self, path: str) -> Output:
        """A declared output, or a path below one, as an artifact for other actions."""
        if not any(path == output or path.startswith(f"{output}/") for output in self.outputs):
            msg = f"{self.label} declares no output '{path}', only {', '.join(self.outputs)}"
            raise ValueError(msg)
        return Output(str(self.label), path)

    def dependencies(self) -> tuple[str, ...]:
        """Labels of the actions that must settle before this one, sorted."""
        made = {item.producer for _, item in self.inputs if isinstance(item, Output)}
        return tuple(sorted(made | {str(label) for label in self.requires}))
