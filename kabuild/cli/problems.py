"""The message and the exit code for an exception that ends a command."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator

import click

from kabuild.base.errors import ExitCode, InfraError, KabuildError, LoadError, Reason, UsageError
from kabuild.base.printing import escaped
from kabuild.base.suggest import suggest
from kabuild.cli.missing import text_of
from kabuild.cli.streams import in_colour

_INTERNAL = (
    "internal error: this is a bug in kabuild; no kernel was judged by it\n"
    "  please report what you did and the lines above"
)
_NO_THREAD = "can't start new thread"
"""Python's message if a thread cannot be started; it has no exception class."""

_HINTS = {
    errno.EMFILE: "raise the limit of open files: ulimit -n 1024",
    errno.ENFILE: "the machine has too many open files",
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some of your quota",
    errno.EAGAIN: "see 'ulimit -u': too many processes",
    errno.ENOMEM: "free some memory, or raise 'ulimit -v'",
}


def tell(problem: Exception) -> ExitCode:
    """Print what happened on stderr; returns the exit code."""
    if isinstance(problem, click.exceptions.NoArgsIsHelpError):
        problem.show()
        return ExitCode.COMMAND_LINE
    if isinstance(problem, click.ClickException):
        _say(_of_command_line(problem))
        return ExitCode.COMMAND_LINE
    known = problem if isinstance(problem, KabuildError) else translated(problem)
    if known is not None:
        _say(str(known))
        return known.exit_code
    sys.excepthook(type(problem), problem, problem.__traceback__)  # our own error, not a verdict
    click.echo(_INTERNAL, err=True)
    return ExitCode.INTERNAL


def _say(text: str) -> None:
    click.echo(f"{in_colour('error', 'red')}: {escaped(text)}", err=True)


def _of_command_line(problem: click.ClickException) -> str:
    """What click found wrong with a command line, as our own errors are written."""
    what, hints = problem.format_message(), []
    if isinstance(problem, click.NoSuchOption):
        what = f"no option '{problem.option_name}'"
        if hint := suggest(problem.option_name, problem.possibilities or ()):
            hints.append(hint)
    if isinstance(problem, click.UsageError) and problem.ctx:
        if isinstance(problem, click.MissingParameter) and _is_patterns(problem.param):
            hints.append(f"for all tasks: {problem.ctx.command_path} //...")
        hints.append(f"see '{problem.ctx.command_path} --help'")
    head = what[:1].lower() + what[1:].removesuffix(".")
    return "\n".join([head, *(f"  {hint}" for hint in hints)])


def _is_patterns(missing: click.Parameter | None) -> bool:
    return missing is not None and missing.name == "patterns"


def translated(problem: Exception) -> KabuildError | None:
    """The error, if the machine or the user caused it; None for a bug in kabuild."""
    for cause in _causes(problem):
        if (refused := _refused(cause)) is not None:
            return _of_system(refused)
        if short := _shortage(cause):
            return InfraError(Reason.NO_RESOURCES, short[0], hint=_HINTS[short[1]])
        if said := text_of(cause):
            what, _, hint = said.partition("\n")
            return InfraError(Reason.NO_PACKAGE, what, hint=hint.strip())
        if isinstance(cause, UnicodeEncodeError) and cause.reason == "surrogates not allowed":
            near = cause.object[max(0, cause.start - 60) : cause.end + 20]
            return UsageError(Reason.BAD_FLAG, f"a name is not UTF-8: {near!a}")
        if isinstance(cause, RecursionError) and _is_deep(cause):
            return LoadError(Reason.BAD_ATTRIBUTE, "the input is nested too deeply")
    return None


def _is_deep(error: RecursionError) -> bool:
    """Whether calls have reached Python's limit, rather than that something else raised it."""
    depth, trace = 0, error.__traceback__
    while trace is not None:
        depth, trace = depth + 1, trace.tb_next
    return depth > sys.getrecursionlimit() // 2


def _refused(error: BaseException) -> OSError | None:
    """What the system refused; ``Path.resolve()`` hides a loop of links, up to Python 3.12."""
    if isinstance(error, OSError):
        return error
    hidden = error.__context__ if isinstance(error, RuntimeError) else None
    return hidden if isinstance(hidden, OSError) and hidden.errno == errno.ELOOP else None


def _shortage(error: BaseException) -> tuple[str, int] | None:
    """A shortage for which Python has no ``OSError``, and its errno."""
    if isinstance(error, MemoryError):
        return "out of memory", errno.ENOMEM
    if isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
        return _NO_THREAD, errno.EAGAIN
    return None


def _of_system(error: OSError) -> KabuildError:
    why = error.strerror or str(error) or type(error).__name__
    what = f"{error.filename}: {why}" if error.filename is not None else why
    return InfraError(Reason.NO_RESOURCES, what, hint=_HINTS.get(error.errno or 0, ""))


def _causes(problem: BaseException) -> Iterator[BaseException]:
    """The exception, then its causes."""
    found: BaseException | None = problem
    while found is not None:
        yield found
        found = found.__cause__
