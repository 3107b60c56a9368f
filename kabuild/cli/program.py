"""The command group. Commands are imported when they are called, so that help is quick."""

from __future__ import annotations

import gc
import importlib
import keyword
import os
import signal
from collections.abc import Mapping

import click

from kabuild.base.errors import ExitCode, InfraError, Reason, UsageError, follows_interrupt
from kabuild.base.suggest import suggest
from kabuild.base.umask import spare_owner
from kabuild.base.version import __version__
from kabuild.cli.interrupts import SIGNALS
from kabuild.cli.streams import mend

_HEEDED = (*SIGNALS, signal.SIGCHLD)
COMMANDS = {
    "init": "Make a workspace with a first task in it.",
    "new": "Add a task or an agent to the workspace.",
    "test": "Judge tasks: run their gates and print the scoreboard.",
    "watch": "Judge tasks again whenever one of their files is saved.",
    "compare": "Compare two agents: which is better, and how certain that is.",
    "report": "Show evaluations, side by side, as a page or as data.",
    "site": "Write a leaderboard of published evaluations as static pages.",
    "records": "Show the best times of bundles, and which records they break.",
    "publish": "Write an evaluation to one file that anyone can rerun.",
    "replay": "Rerun a published evaluation and report what was reproduced.",
    "verify": "Check a published evaluation without running it.",
    "analyze": "Count what kernels do, without a GPU or by a GPU's counters.",
    "bench": "Show how the times of a task are distributed.",
    "model": "Show where a model's time goes, and make tasks of its parts.",
    "import": "Import the tasks of another benchmark from a checkout of it.",
    "validate": "Check whether tasks are fit for a benchmark.",
    "build": "Make targets and show their outputs under out/.",
    "why": "Explain why a target is cached, or why it would run.",
    "query": "Query targets and their dependencies.",
    "aquery": "Print actions and everything in their keys.",
    "diff-keys": "Show the difference between two keys.",
    "toolchain": "Manage toolchains: list, show, pin, fetch, verify, lock.",
    "fleet": "Check a fleet: its servers, workers and toolchains.",
    "worker": "Run a node of a fleet.",
    "cache": "Manage the store: stats, gc, verify, export, import.",
    "info": "Print paths: workspace, store, toolchains, rules.",
    "doctor": "Check this machine, and say how to install missing parts.",
    "clean": "Remove out/, and with --expunge the store's results.",
    "version": "Print the version.",
    "help": "Show the help of kabuild, or of a command.",
}

_COMPLETION = "_KABUILD_COMPLETE"
_DIGITS = 9  # of the number of a word
_GARBAGE = 20_000
"""Allocations between two garbage collections.

A build keeps nearly all objects to its end; with Python's default of 700, collections take a
quarter of a large null build.
"""


def module_of(command: str) -> str:
    """The module of a command. Python's keywords get an underscore at the end."""
    name = command.replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) else name


class LazyGroup(click.Group):
    """A group that imports the module of a command on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order in which users need them."""
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,
        cmd_name: str,
    ) -> click.Command | None:
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"kabuild.cli.{module_of(cmd_name)}")
        command: click.Command = module.command
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run the command. A broken pipe is an error: click would end with code 1, silently.

        A closed stdout is not an error; see ``streams.Output``.
        """
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            what = "a process that kabuild wrote to has ended"
            where = f"{error.filename}: " if error.filename else ""
            raise InfraError(Reason.NO_RESOURCES, f"{where}{what} (broken pipe)") from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command to a mistyped one."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            hint = suggest(args[0], COMMANDS)
            ctx.fail(f"no command '{args[0]}'" + (f"; {hint}" if hint else ""))
        return super().resolve_command(ctx, args)

    def format_commands(
        self,
        ctx: click.Context,
        formatter: click.HelpFormatter,
    ) -> None:
        """The list of commands, without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog='Shell completion: eval "$(_KABUILD_COMPLETE=bash_source kabuild)" (or zsh, fish).',
)
@click.version_option(__version__, prog_name="kabuild")
def cli() -> None:
    """Hermetic build and evaluation of GPU kernels written by agents.

    \b
    kabuild init my_kernels                a workspace to start from
    kabuild test //tasks/hip2hip/...       judge all tasks of a family
    kabuild test //tasks/hip2hip/softmax --solution=my.hip
    kabuild query 'deps(//tasks/hip2hip/softmax)'
    """
    try:
        os.getcwd()  # noqa: PTH109 - all that is asked is whether there is one
    except OSError:
        what = "the working directory was removed"
        raise UsageError(
            Reason.NO_WORKSPACE, what, hint="change into an existing directory"
        ) from None


def run() -> int:
    """Run the command line; one of ``ExitCode``. Raises KeyboardInterrupt."""
    gc.set_threshold(_GARBAGE)
    settle()
    mend()
    try:
        _prepare_completion(os.environ)
        # The returned value is the code of the command's ``Exit``.
        return int(cli.main(prog_name="kabuild", standalone_mode=False) or ExitCode.OK)
    except click.Abort:  # as click converts it
        raise KeyboardInterrupt from None
    except Exception as problem:  # noqa: BLE001 - whatever it is, it is told
        if follows_interrupt(problem):
            raise KeyboardInterrupt from None
        from kabuild.cli.problems import tell

        return int(tell(problem))


def _prepare_completion(environment: Mapping[str, str]) -> None:
    """Register the shells. Raises UsageError without the words of a command line."""
    wanted = environment.get(_COMPLETION, "")
    if not wanted:
        return
    from click.shell_completion import add_completion_class

    from kabuild.cli.shells import Bash, Fish, Zsh

    for shell in (Bash, Zsh, Fish):
        add_completion_class(shell)
    if not wanted.endswith("_complete"):
        return
    place = environment.get("COMP_CWORD", "")
    counted = wanted.startswith("fish") or (place.isdecimal() and len(place) < _DIGITS)
    if not environment.keys() >= {"COMP_WORDS", "COMP_CWORD"} or not counted:
        raise UsageError(
            Reason.BAD_FLAG,
            f"{_COMPLETION}={wanted} without the shell's COMP_WORDS and COMP_CWORD",
            hint=f"unset {_COMPLETION}: only a shell sets it, to complete a command line",
        )


def settle() -> None:
    """Reset what the starter of this process may have left it, and kabuild cannot work with.

    A umask may keep others out, but not the owner. Where SIGCHLD is ignored, Linux forgets how
    children have ended; blocked signals would be ignored.
    """
    spare_owner()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEEDED)
