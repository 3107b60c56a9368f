"""Values and faults that the two halves of the judging harness exchange.

The upper half (stages, tolerance, timing) decides what to run, and judges results; the lower half
(launcher, runners, buffers) runs a hostile program and returns its outputs. Nothing here imports
torch, so that the launcher can be forked before torch is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from terms.reasons import Reason

if TYPE_CHECKING:
    from torch import Tensor

Abi = Literal["hip", "python", "torch", "call"]
Scalar = float | int | str
"""The value of a scalar argument; ``bool`` is an ``int``, and both but numbers are for calls."""


class CandidateFault(Exception):  # noqa: N818 (a verdict on the candidate, no error of ours)
    """The candidate failed or cheated.

    Attributes:
        reason: of the verdict.
        rejected: whether the verdict is REJECTED and not FAIL.
        detail: text for people. It may quote the candidate's output, made printable and short; no
            code may depend on it.
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
            writes into its outputs, ``torch`` a module whose entry returns its outputs, ``call``
            a module of which ``call`` says how it is called.
        path: the ``.so`` or ``.py`` file.
        entry: the symbol or function. For ``hip`` it is looked up as ``<entry>_<dtype>``,
            then as ``<entry>``; for ``torch`` a missing ``baseline`` means ``reference``.
        libraries: shared libraries loaded, in order, before a ``hip`` program.
        runner: the native runner executable of the ``hip`` ABI.
        platform: where it runs: ``cpu``, or a GPU whose memory the judge then shares.
        mode: of ``torch.compile``, for the ``torch`` ABI; empty to run it as it is.
        launch_filter: the library that stands before a device's driver, and decides which
            kernels run; empty for none.
        call: of the ``call`` ABI, the call as JSON.
        adapter: the task's own functions for it, a file; empty for none.
        modules: a folder of modules that both sides may import; empty for none.
        binaries: of the ``python`` ABI, a file of kernels that the compile gate compiled for the
            device; empty for none.
    """

    abi: Abi
    path: str
    entry: str
    libraries: tuple[str, ...] = ()
    runner: str | None = None
    platform: str = "cpu"
    mode: str = ""
    launch_filter: str = ""
    call: str = ""
    adapter: str = ""
    modules: str = ""
    binaries: str = ""

    @property
    def on_device(self) -> bool:
        """Whether its tensors lie in a device's memory."""
        return self.platform != "cpu"


@dataclass(frozen=True)
class Argument:
    """A tensor of the signature.

    Attributes:
        dtype: a name such as ``f32``, or ``T`` for the config's own.
        shape: one integer expression over the dims for each axis. The first one of a list is
            how many tensors it has: for the judge they are one.
        listed: whether a call is given a list of the tensors along the first axis.
        optional: whether a config may have ``None`` in its place.
        layout: its strides, in words or as expressions: ``base.layouts``.
    """

    name: str
    dtype: str
    shape: tuple[str, ...]
    listed: bool = False
    optional: bool = False
    layout: str = ""


@dataclass(frozen=True)
class Signature:
    """What the entry takes, in the order of the C arguments.

    Attributes:
        scalars: pairs of name and default; a float is a C ``float``, an int ``int64_t``.
        dims: names, each an ``int64_t``.
        updates: the inputs that a call changes; what is in them after it is an output, too.
        state: what holds for a config, such as weights: it is not passed with a call.
    """

    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    scalars: tuple[tuple[str, Scalar], ...]
    dims: tuple[str, ...]
    updates: tuple[str, ...] = ()
    state: tuple[Argument, ...] = ()

    @property
    def kept(self) -> tuple[Argument, ...]:
        """The inputs that no call may change."""
        return tuple(argument for argument in self.inputs if argument.name not in self.updates)

    @property
    def results(self) -> tuple[Argument, ...]:
        """All that is compared after a call: the outputs, and the inputs that it changes."""
        return (*self.outputs, *(a for a in self.inputs if a.name in self.updates))

    def of(self, config: Config) -> Signature:
        """The signature without what is ``None`` in ``config``."""
        if not config.absent:
            return self
        present = tuple(a for a in self.inputs if a.name not in config.absent)
        return replace(self, inputs=present)


@dataclass(frozen=True)
class Config:
    """One point of the shape space. A scalar that it does not name has its default.

    Attributes:
        absent: the optional inputs in whose place is ``None``.
    """

    name: str
    dims: Mapping[str, int]
    dtype: str
    scalars: Mapping[str, Scalar]
    absent: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunnerPolicy:
    """Limits of a runner, and the judge's time limits for it.

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
        life_seconds: for all requests together.
        stderr_bytes: how much of the end of its output is kept for people.
        cache: a directory that it may fill for others of its kind; empty for none. Only what
            comes with the task has one: a candidate must not meet its own past.
        launches: whether kernels run when they are launched. Where they do not, outputs show
            what else writes them. On a device it takes a program with a ``launch_filter``.
        own_kernels: whether such a program may launch its own kernels only, besides PyTorch's
            copies and fills.
        hides: whether host code of such a program sees no device memory on the CPU, in any call
            whose time does not count. It never does in calls whose launches are left out.
        counted: whether a Triton program on the CPU has its kernels' accesses counted.
        awake: whether the judge waits for a batch on a device without sleeping, for its clock.
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
    own_kernels: bool = False
    hides: bool = False
    counted: bool = False
    awake: bool = True

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
class Gated:
    """The results of a batch behind a gate.

    Attributes:
        outputs: as those of ``Batch``.
        held: whether all calls were queued before the gate was opened. A program that waits for
            the device in between, or queues more than fits, has it opened early; then the times
            mean nothing.
        open_ns: from the opening until the device was idle, by the judge's clock.
        device_ns: the same by the runner's events: evidence only.
        launch_ns: what queueing took the host, by the runner's clock.
    """

    outputs: tuple[Mapping[str, Tensor], ...]
    held: bool
    open_ns: int
    device_ns: int
    launch_ns: int


@dataclass(frozen=True)
class Batch:
    """The results of a batch of calls.

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
        waited_ns: for how long in that time the judge and the runner were ready to go on and others
            had the processors, as the kernel counts. All three are 0 if unknown.
        launches: how many kernels, copies of PyTorch and graphs entered a device's queue, by the
            runner's own record, which a candidate can change; 0 if unknown.
    """

    outputs: tuple[Mapping[str, Tensor], ...]
    reported_ns: int
    wall_ns: int
    thread_ns: int = 0
    process_ns: int = 0
    waited_ns: int = 0
    launches: int = 0
