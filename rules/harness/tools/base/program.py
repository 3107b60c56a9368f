"""What the two halves of the judging harness tell each other: values and faults.

The upper half (stages, tolerance, timing) decides what to run and what it is worth; the
lower half (launcher, runners, buffers) runs a hostile program and says what came out.
Nothing here imports torch, so that the launcher can be forked before torch is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, unique
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import Tensor

Abi = Literal["hip", "python", "torch"]


@unique
class Reason(Enum):
    """Why a candidate did not pass, as written into ``verdict.json``."""

    COMPILE_ERROR = "COMPILE_ERROR"
    UNSUPPORTED_FEATURE = "UNSUPPORTED_FEATURE"
    MISSING_ENTRY = "MISSING_ENTRY"
    WRONG_RESULT = "WRONG_RESULT"
    WRONG_SHAPE = "WRONG_SHAPE"
    WRONG_DTYPE = "WRONG_DTYPE"
    NON_FINITE = "NON_FINITE"
    NONDETERMINISTIC = "NONDETERMINISTIC"
    OUT_OF_BOUNDS = "OUT_OF_BOUNDS"
    INPUT_MUTATED = "INPUT_MUTATED"
    INCOMPLETE_OUTPUT = "INCOMPLETE_OUTPUT"
    TIMEOUT = "TIMEOUT"
    CRASH = "CRASH"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    LAUNCH_ERROR = "LAUNCH_ERROR"
    PROTOCOL_VIOLATION = "PROTOCOL_VIOLATION"
    CLOCK_MISMATCH = "CLOCK_MISMATCH"
    IMPLAUSIBLE = "IMPLAUSIBLE"
    EXCEPTION = "EXCEPTION"
    FORBIDDEN_SYSCALL = "FORBIDDEN_SYSCALL"
    KERNEL_BYPASSED = "KERNEL_BYPASSED"
    DATA_RACE = "DATA_RACE"
    DIVERGENT_BARRIER = "DIVERGENT_BARRIER"
    UNINITIALISED = "UNINITIALISED"
    EARLIER_GATE = "EARLIER_GATE"

    @property
    def rejects(self) -> bool:
        """Whether the reason is a broken contract or a cheat, and not just failed work."""
        return self in _REJECTING


_REJECTING = frozenset(
    {
        Reason.INPUT_MUTATED,
        Reason.OUT_OF_BOUNDS,
        Reason.PROTOCOL_VIOLATION,
        Reason.CLOCK_MISMATCH,
        Reason.IMPLAUSIBLE,
        Reason.FORBIDDEN_SYSCALL,
        Reason.KERNEL_BYPASSED,
    }
)


class CandidateFault(Exception):  # noqa: N818 (a verdict on the candidate, no error of ours)
    """The candidate failed or cheated.

    Attributes:
        reason: what the verdict says.
        rejected: whether the verdict is REJECTED and not FAIL.
        detail: text for people. It may quote what the candidate wrote, made printable and
            short; nothing may be concluded from it.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason.value}: {detail}")
        self.reason = reason
        self.rejected = reason.rejects
        self.detail = detail


class MachineFault(Exception):  # noqa: N818 (the pair of CandidateFault)
    """The machine or the harness failed, so nothing was judged."""


@dataclass(frozen=True)
class Program:
    """A program under test.

    Attributes:
        abi: how it is called: ``hip`` a shared library, ``python`` a module whose entry
            writes into its outputs, ``torch`` a module whose entry returns its outputs.
        path: the ``.so`` or ``.py`` file.
        entry: the symbol or function. For ``hip`` it is looked up as ``<entry>_<dtype>``,
            then as ``<entry>``; for ``torch`` a missing ``baseline`` means ``reference``.
        libraries: shared libraries loaded, in order, before a ``hip`` program.
        runner: the native runner executable of the ``hip`` ABI.
        platform: where it runs: ``cpu``, or a GPU whose memory the judge then shares.
        mode: of ``torch.compile``, for the ``torch`` ABI; empty to run it as it is.
    """

    abi: Abi
    path: str
    entry: str
    libraries: tuple[str, ...] = ()
    runner: str | None = None
    platform: str = "cpu"
    mode: str = ""

    @property
    def on_device(self) -> bool:
        """Whether its tensors lie in a device's memory."""
        return self.platform != "cpu"


@dataclass(frozen=True)
class Argument:
    """A tensor of the signature.

    Attributes:
        dtype: a name such as ``f32``, or ``T`` for the config's own.
        shape: one integer expression over the dims for each axis.
    """

    name: str
    dtype: str
    shape: tuple[str, ...]


@dataclass(frozen=True)
class Signature:
    """What the entry takes, in the order of the C arguments.

    Attributes:
        scalars: pairs of name and default; a float is a C ``float``, an int ``int64_t``.
        dims: names, each an ``int64_t``.
    """

    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    scalars: tuple[tuple[str, float | int], ...]
    dims: tuple[str, ...]


@dataclass(frozen=True)
class Config:
    """One point of the shape space. A scalar that it does not name has its default."""

    name: str
    dims: Mapping[str, int]
    dtype: str
    scalars: Mapping[str, float | int]


@dataclass(frozen=True)
class RunnerPolicy:
    """What a runner may use, and how long the judge waits for it.

    Attributes:
        memory_bytes: address space of the runner, the shared buffers included, on top of
            what the warm Python process that it is forked from already has.
        cpu_seconds: processor time over its whole life.
        threads: tasks of all kinds.
        tmp_bytes: size of its private ``/tmp``, the only place where it can write files.
        workspace_bytes: the largest scratch buffer that a candidate may ask for.
        open_seconds: from the fork until the candidate is loaded.
        load_seconds: for a config to be mapped.
        call_seconds: for each call of a batch, on top of ``batch_seconds``.
        batch_seconds: for a batch of any size.
        life_seconds: for all that it is asked together.
        stderr_bytes: how much of the end of its output is kept for people.
        cache: a directory that it may fill for others of its kind; empty for none. Only what
            comes with the task has one: a candidate must not meet its own past.
        launches: whether kernels run when they are launched. Where they do not, outputs show
            what else writes them.
    """

    memory_bytes: int = 4 << 30
    cpu_seconds: int = 900
    threads: int = 128
    tmp_bytes: int = 64 << 20
    workspace_bytes: int = 1 << 30
    open_seconds: float = 60.0
    load_seconds: float = 30.0
    call_seconds: float = 10.0
    batch_seconds: float = 10.0
    life_seconds: float = 600.0
    stderr_bytes: int = 4096
    cache: str = ""
    launches: bool = True

    @classmethod
    def suited(cls, program: Program, call_seconds: float) -> RunnerPolicy:
        """What ``program`` needs at least: drivers and compilers of a device take more."""
        if not program.on_device:
            return cls(call_seconds=call_seconds)
        compiling = program.abi != "hip"
        return cls(
            memory_bytes=64 << 30,  # drivers map much that they never touch
            threads=1024,
            tmp_bytes=1 << 30,
            workspace_bytes=8 << 30,
            open_seconds=180.0,
            call_seconds=call_seconds,
            batch_seconds=120.0 if compiling else cls.batch_seconds,
            life_seconds=900.0,
        )


@dataclass(frozen=True)
class Batch:
    """What came out of a batch of calls.

    Attributes:
        outputs: one mapping per call, in the order in which the inputs were given; the
            tensors are the judge's own copies. What the candidate left unwritten holds
            the poison of ``dtypes``.
        reported_ns: the time of all calls together, as the runner measured it.
        wall_ns: the judge's own time, from just before RUN until the runner has answered and
            is frozen. What that costs without any call is the ``wall_ns`` of ``empty``. On a
            device it ends with the answer, and what held up the judge's own copies is added.
        thread_ns: how long the runner's main thread ran in that time, as the kernel counts:
            however busy the machine is, no more than what an honest runner reports.
        process_ns: the same for all of its threads together.
        waited_ns: for how long in that time the judge and the runner were ready to go on and
            others had the processors, as the kernel counts. All three 0 where nobody counts.
    """

    outputs: tuple[Mapping[str, Tensor], ...]
    reported_ns: int
    wall_ns: int
    thread_ns: int = 0
    process_ns: int = 0
    waited_ns: int = 0
