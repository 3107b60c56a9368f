"""Messages of the service Execution, and of long-running operations, as bytes.

Field numbers are those of remote_execution.proto, operations.proto and status.proto.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from kabuild.base.canonical import int_field, message_field, text_field
from kabuild.model.digest import Digest
from kabuild.remote.messages import Fields

EXECUTE = "/build.bazel.remote.execution.v2.Execution/Execute"
WAIT = "/build.bazel.remote.execution.v2.Execution/WaitExecution"
CANCEL = "/google.longrunning.Operations/CancelOperation"


class Stage(IntEnum):
    """How far an execution is."""

    UNKNOWN = 0
    CACHE_CHECK = 1
    QUEUED = 2
    EXECUTING = 3
    COMPLETED = 4


class Code(IntEnum):
    """The codes of ``google.rpc.Status`` that say more than that something failed."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    INTERNAL = 13
    UNAVAILABLE = 14


@dataclass(frozen=True)
class Answer:
    """``ExecuteResponse``: a worker's ``ActionResult``, or why there is none.

    ``cached``: the server remembered it. ``code`` is gRPC's.
    """

    code: int
    message: str
    result: bytes
    cached: bool


@dataclass(frozen=True)
class Operation:
    """What a server says of one execution; ``answer`` is there when it is over."""

    name: str
    stage: int
    answer: Answer | None

    @classmethod
    def parse(cls, data: bytes) -> Operation:
        """Read ``google.longrunning.Operation``. Raises ``ValueError``."""
        message = Fields(data)
        about = Fields(Fields(message.data(2)).data(2))
        answer = None
        if message.number(3):
            answer = _answer(message)
        return cls(message.text(1), about.number(1), answer)


@dataclass(frozen=True)
class WorkerResult:
    """A worker's ``ActionResult``, as far as a wire action needs it.

    Attributes:
        exit_code: of the program.
        trees: digests of ``Tree`` messages by path of output directory.
        stderr: what the program said, if it is short; else ``stderr_digest`` names it.
    """

    exit_code: int
    trees: dict[str, Digest]
    stderr: bytes
    stderr_digest: Digest | None

    @classmethod
    def parse(cls, data: bytes) -> WorkerResult:
        """Read ``ActionResult``. Raises ``ValueError``."""
        message = Fields(data)
        directories = [Fields(item) for item in message.messages(3)]
        named = message.data(8)
        return cls(
            exit_code=message.number(4),
            trees={item.text(1): Digest.from_wire(item.data(3)) for item in directories},
            stderr=message.data(7),
            stderr_digest=Digest.from_wire(named) if named else None,
        )


def execute(instance: str, action: Digest, *, anew: bool) -> bytes:
    """``ExecuteRequest``; ``anew`` skips what the server remembers."""
    head = text_field(1, instance) + int_field(3, int(anew))
    return head + message_field(6, action.to_wire())


def wait(name: str) -> bytes:
    """``WaitExecutionRequest``."""
    return text_field(1, name)


def cancel(name: str) -> bytes:
    """``CancelOperationRequest``."""
    return text_field(1, name)


def _answer(message: Fields) -> Answer:
    """Of an operation that is over: its error, or its response."""
    error = Fields(message.data(4))
    if error.number(1):
        return Answer(error.number(1), error.text(2), b"", cached=False)
    response = Fields(Fields(message.data(5)).data(2))
    status = Fields(response.data(3))
    return Answer(
        code=status.number(1),
        message=status.text(2) or response.text(5),
        result=response.data(1),
        cached=bool(response.number(2)),
    )
