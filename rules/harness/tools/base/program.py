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
INTERPRETED = 6
"""How much longer a call may take where the CPU interprets its kernels, program by program."""
Scalar = float | int | str
"""The value of a scalar argument; ``bool`` is an ``int``. Only calls take non-numbers."""


class CandidateFault(Exception):  # noqa: N818 (a verdict on the candidate, no error of ours)
    """The candidate failed or cheated.

    Attributes:
        reason: the verdict's reason.
        rejected: whether the verdict is REJECTED rather than FAIL.
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
        abi: how it is called: ``hip``, a shared library; ``python``, a module whose entry
            writes into its outputs; ``torch``, a module whose entry returns its outputs; ``call``,
            a module that is called as the attribute ``call`` says.
        path: the ``.so`` or ``.py`` file.
        entry: the symbol or function. For ``hip`` it is looked up as ``<entry>_<dtype>``,
            then as ``<entry>``; for ``torch`` a missing ``baseline`` means ``reference``.
        libraries: shared libraries loaded, in order, before a ``hip`` program.
        runner: the native runner executable of the ``hip`` ABI.
        platform: where it runs: ``cpu``, or a GPU whose memory it shares with the judge.
        mode: the mode of ``torch.compile``, for the ``torch`` ABI; empty to run it eagerly.
        launch_filter: the library in front of a device's driver that decides which kernels run;
            empty for none.
        call: for the ``call`` ABI, the call as JSON.
        adapter: a file with the task's own functions for the call; empty for none.
        modules: a folder of modules that both sides may import; empty for none.
        binaries: of Python programs, a file of the kernels that the compile gate compiled for the
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

    @property
    def returns_on_host(self) -> bool:
        """Whether its calls return what lies in its own process, not in a device's memory."""
        return self.abi == "call" and not self.on_device


@dataclass(frozen=True)
class Argument:
    """A tensor of the signature.

    Attributes:
        dtype: a name such as ``f32``, or ``T`` for the config's own.
        shape: one integer expression over the dims for each axis. The first axis of a list is
            its number of tensors: the judge treats them as one tensor.
        listed: whether a call gets a list of the tensors along the first axis.
        optional: whether a config may pass ``None`` instead.
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
    """The arguments of the entry, in the order of the C arguments.

    Attributes:
        scalars: pairs of name and default; a float is a C ``float``, an int ``int64_t``.
        dims: names, each an ``int64_t``.
        updates: the inputs that a call changes; their final contents are outputs, too.
        state: tensors that are fixed for a config, such as weights; not passed with a call.
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
        """Everything that is compared after a call: the outputs, and the inputs that it changes."""
        return (*self.outputs, *(a for a in self.inputs if a.name in self.updates))

    def of(self, config: Config) -> Signature:
        """The signature without the arguments that are ``None`` in ``config``."""
        if not config.absent:
            return self
        present = tuple(a for a in self.inputs if a.name not in config.absent)
        return replace(self, inputs=present)


@dataclass(frozen=True)
class Config:
    """One point of the shape space. A scalar that it does not name has its default.

    Attributes:
        absent: the optional inputs that are ``None``.
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
        memory_bytes: address space of the runner, including the shared buffers, on top of
            that of the warm Python process that it is forked from.
        cpu_seconds: processor time over its whole life.
        threads: tasks of all kinds.
        tmp_bytes: size of its private ``/tmp``, the only place where it can write files.
        workspace_bytes: the largest scratch buffer that a candidate may ask for.
        open_seconds: from the fork until the candidate is loaded.
        load_seconds: to map a config.
        call_seconds: for each call of a batch, on top of ``batch_seconds``.
        batch_seconds: for a batch of any size.
        life_seconds: for all requests together.
        stderr_bytes: how much of the end of its output is kept for people.
        cache: a directory that it may fill for later runners of its kind; empty for none. Only
            programs of the task have one: a candidate must not see results of earlier runs.
        launches: whether launched kernels run. If they do not, the outputs show what else
            writes them. On a device this requires a program with a ``launch_filter``.
        own_kernels: whether such a program may launch only its own kernels, besides PyTorch's
            copies and fills.
        hides: whether device memory is hidden from such a program's host code on the CPU, in any
            call whose time does not count. In calls whose launches are left out it always is.
        counted: whether the kernels' accesses of a Triton program on the CPU are counted.
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
        """The minimum that ``program`` needs: interpreters, drivers and compilers take more."""
        if not program.on_device:
            interpreted = program.abi in {"python", "call"}
            return cls(call_seconds=call_seconds * (INTERPRETED if interpreted else 1))
        compiling = program.abi != "hip"
        return cls(
            memory_bytes=64 << 30,  # drivers map much memory that they never touch
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
        outputs: like those of ``Batch``.
        held: whether all calls were queued before the gate was opened. The gate is opened early
            for a program that waits for the device in between or queues more than fits; then the
            times mean nothing.
        open_ns: from the opening until the device was idle, by the judge's clock.
        device_ns: the same by the runner's events: evidence only.
        launch_ns: the host time to queue the calls, by the runner's clock.
        doubt_ns: how far ``open_ns`` may be off, as the judge's processor was elsewhere.
    """

    outputs: tuple[Mapping[str, Tensor], ...]
    held: bool
    open_ns: int
    device_ns: int
    launch_ns: int
    doubt_ns: int = 0


@dataclass(frozen=True)
class Batch:
    """The results of a batch of calls.

    Attributes:
        outputs: one mapping per call, in the order in which the inputs were given; the
            tensors are the judge's own copies. Elements that the candidate did not write hold
            the poison of ``dtypes``.
        reported_ns: the time of all calls together, as the runner measured it.
        wall_ns: the judge's own time, from just before RUN until the runner has answered and
            is frozen. The ``wall_ns`` of ``empty`` is the cost without any call. On a device the
            time ends with the answer, and delays of the judge's own copies are added.
        thread_ns: how long the runner's main thread ran in that time, by the kernel's count.
            However busy the machine is, it does not exceed what an honest runner reports.
        process_ns: the same for all of its threads together.
        waited_ns: how long in that time the judge and the runner were ready to run while others
            had the processors, by the kernel's count. All three are 0 if unknown.
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


def names_in(tree: object) -> set[str]:
    """The names of the tensors that a call passes, at any depth of its tree."""
    if isinstance(tree, Mapping):
        name = tree.get("name")
        own = {name} if isinstance(name, str) else set[str]()
        return own.union(*map(names_in, tree.values()))
    if isinstance(tree, list):
        return set[str]().union(*map(names_in, tree))
    return set()
