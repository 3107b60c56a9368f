"""The error tree. Every error that a user may see is one of these.

KabuildError                 one clear message, with a machine-readable reason and an exit code
├── UsageError               the command line, a label or a pattern is wrong        exit 2
├── LoadError                WORKSPACE.toml, BUILD.toml or a rule file is wrong     exit 1
│   └── LoadErrors           several of them, reported together
├── AnalysisError            targets do not fit together (cycle, missing provider)  exit 1
├── NoTestsError             nothing matched that could be tested                   exit 4
├── InfraError               the machine failed; nothing was judged                 exit 36
│   ├── SandboxError         a sandbox could not be set up
│   ├── DeviceError          a device is busy, or does not answer
│   ├── StoreError           the store cannot be read or written
│   ├── RemoteError          a server does not answer, or refuses
│   └── ToolchainError       a toolchain is missing or cannot be downloaded
│       └── DriftError       a toolchain is not what was pinned                     exit 45
├── BundleError              a published file cannot be made, or is false           exit 1
├── Interrupted              the user stopped the build                             exit 8
└── InternalError            kabuild itself is wrong                                exit 37
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from typing import ClassVar


@unique
class ExitCode(int, Enum):
    """Process exit codes, Bazel's where Bazel has one."""

    OK = 0
    BUILD_FAILED = 1
    COMMAND_LINE = 2
    TESTS_FAILED = 3
    NO_TESTS = 4
    INTERRUPTED = 8
    ENVIRONMENT = 36
    INTERNAL = 37
    TOOLCHAIN_DRIFT = 45


@unique
class Reason(Enum):
    """Why an error was raised. Tests assert on it, not on the prose."""

    BAD_LABEL = "bad label"
    BAD_PATTERN = "bad pattern"
    BAD_FLAG = "bad flag"
    BAD_QUERY = "bad query"
    BAD_SOLUTION = "bad solution"
    NO_WORKSPACE = "no workspace"
    VERSION_TOO_OLD = "version too old"
    TOML_SYNTAX = "toml syntax"
    UNKNOWN_PACKAGE = "unknown package"
    UNKNOWN_TARGET = "unknown target"
    UNKNOWN_RULE = "unknown rule"
    UNKNOWN_ATTRIBUTE = "unknown attribute"
    UNKNOWN_KEY = "unknown key"
    UNKNOWN_PLATFORM = "unknown platform"
    UNKNOWN_GATE = "unknown gate"
    UNKNOWN_AGENT = "unknown agent"
    UNKNOWN_CONFIG = "unknown config"
    MISSING_ATTRIBUTE = "missing attribute"
    BAD_ATTRIBUTE = "bad attribute"
    DUPLICATE_TARGET = "duplicate target"
    MISSING_FILE = "missing file"
    ESCAPING_PATH = "escaping path"
    TOO_LARGE = "too large"
    BAD_RULE = "bad rule"
    BAD_PLATFORM = "bad platform"
    CYCLE = "cycle"
    NO_TOOLCHAIN = "no toolchain"
    TOOLCHAIN_DRIFT = "toolchain drift"
    NOT_LOCKED = "not locked"
    BAD_LOCK = "bad lock"
    FETCH_FAILED = "fetch failed"
    BAD_ARCHIVE = "bad archive"
    NO_PROVIDER = "no provider"
    NO_TESTS = "no tests"
    NO_DEVICE = "no device"
    DEVICE_BUSY = "device busy"
    NO_SECRET = "no secret"  # noqa: S105 - no password
    DEVICE_LOST = "device lost"
    SANDBOX_UNAVAILABLE = "sandbox unavailable"
    SANDBOX_FAILED = "sandbox failed"
    STORE_UNWRITABLE = "store unwritable"
    STORE_FULL = "store full"
    STORE_BUSY = "store busy"
    NO_SEAL_KEY = "no seal key"
    BLOB_MISSING = "blob missing"
    BLOB_CORRUPT = "blob corrupt"
    REMOTE_UNAVAILABLE = "remote unavailable"
    REMOTE_REFUSED = "remote refused"
    REMOTE_MISSING = "remote missing"
    NODE_FAILED = "node failed"
    INPUT_CHANGED = "input changed"
    BUNDLE_DAMAGED = "bundle damaged"
    BUNDLE_VERSION = "bundle version"
    BUNDLE_TOO_LARGE = "bundle too large"
    NOT_PUBLISHABLE = "not publishable"
    NOT_SIGNED = "not signed"
    BAD_SIGNATURE = "bad signature"
    ACTION_CRASHED = "action crashed"
    OUTPUT_MISSING = "output missing"
    OUTPUT_UNWRITABLE = "output unwritable"
    NO_RESOURCES = "no resources"
    NO_PACKAGE = "no package"
    INTERRUPTED = "interrupted"
    INTERNAL = "internal"


@dataclass(frozen=True, order=True)
class Position:
    """A place in a text file. ``line`` and ``column`` count from 1; 0 means the whole file."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.file
        column = f":{self.column}" if self.column else ""
        return f"{self.file}:{self.line}{column}"


def described(error: BaseException) -> str:
    """An exception of foreign code in one line, even if its ``str()`` fails."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - its own __str__ is as foreign
        return type(error).__name__


def follows_interrupt(error: BaseException) -> bool:
    """Whether an interrupt caused it, as when shutil then closes a file twice."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, KeyboardInterrupt):
        found = found.__cause__ or found.__context__
    return found is not None


class KabuildError(Exception):
    """One problem, in words for the person who can fix it.

    ``message`` says what was found and what was expected; ``hint`` says what to do;
    ``position`` says where. They print as::

        tasks/hip2hip/softmax/BUILD.toml:7: no target ':sofmax' in //tasks/hip2hip/softmax
          did you mean ':softmax'?
    """

    exit_code: ClassVar[ExitCode] = ExitCode.INTERNAL

    def __init__(
        self,
        reason: Reason,
        message: str,
        *,
        position: Position | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.position = position
        self.hint = hint

    def __str__(self) -> str:
        where = f"{self.position}: " if self.position else ""
        hint = "".join(f"\n  {line}" for line in self.hint.splitlines())
        return f"{where}{self.message}{hint}"


class UsageError(KabuildError):
    """The command line, a label or a pattern is wrong."""

    exit_code = ExitCode.COMMAND_LINE


class LoadError(KabuildError):
    """A WORKSPACE.toml, BUILD.toml or rule file is wrong."""

    exit_code = ExitCode.BUILD_FAILED


class LoadErrors(LoadError):  # noqa: N818 - it is several
    """Several problems, reported together so that they can be fixed together.

    ``errors`` holds them in the order of their files; reason and position are the first's.
    """

    def __init__(self, errors: Iterable[LoadError]) -> None:
        flat = tuple(part for error in errors for part in _parts(error))
        first = flat[0]
        super().__init__(first.reason, first.message, position=first.position, hint=first.hint)
        self.errors = flat

    @classmethod
    def combine(cls, errors: Sequence[LoadError]) -> LoadError:
        """A single error as it is, several as one LoadErrors. ``errors`` is not empty."""
        return errors[0] if len(errors) == 1 else cls(errors)

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self.errors)


def _parts(error: LoadError) -> tuple[LoadError, ...]:
    return error.errors if isinstance(error, LoadErrors) else (error,)


class AnalysisError(KabuildError):
    """Targets that are each valid do not fit together."""

    exit_code = ExitCode.BUILD_FAILED


class NoTestsError(KabuildError):
    """Nothing that can be tested matched. Never a pass: a typo must not look like success."""

    exit_code = ExitCode.NO_TESTS


class InfraError(KabuildError):
    """The machine failed, so nothing was judged. Never cached, never scored."""

    exit_code = ExitCode.ENVIRONMENT


class SandboxError(InfraError):
    """A sandbox could not be set up."""


class DeviceError(InfraError):
    """A device cannot be used, or was lost during use.

    ``spoiled``: an action had begun on it.
    """

    def __init__(
        self, reason: Reason, message: str, *, spoiled: bool = False, hint: str = ""
    ) -> None:
        super().__init__(reason, message, hint=hint)
        self.spoiled = spoiled


class StoreError(InfraError):
    """The store cannot be read or written."""


class RemoteError(InfraError):
    """A server does not answer (REMOTE_UNAVAILABLE), refuses what was asked of it
    (REMOTE_REFUSED), or lacks it (REMOTE_MISSING).

    ``status`` is gRPC's name for it, such as ``PERMISSION_DENIED``; empty if gRPC has none.
    """

    def __init__(self, reason: Reason, message: str, *, status: str = "", hint: str = "") -> None:
        super().__init__(reason, message, hint=hint)
        self.status = status


class ToolchainError(InfraError):
    """A toolchain is missing or cannot be fetched."""


class DriftError(ToolchainError):
    """A toolchain differs from its pin, or lacks a required pin."""

    exit_code = ExitCode.TOOLCHAIN_DRIFT


class BundleError(KabuildError):
    """A bundle cannot be written, or is damaged or false."""

    exit_code = ExitCode.BUILD_FAILED


class Interrupted(KabuildError):  # noqa: N818 - the user did this; nothing failed
    """The user stopped the build. Finished work is kept."""

    exit_code = ExitCode.INTERRUPTED


class InternalError(KabuildError):
    """kabuild itself is wrong."""
