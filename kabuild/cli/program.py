"""The commands, imported when they are called, so help is instant; and how each may end."""

from __future__ import annotations

import gc
import importlib
import sys

import click

from kabuild.base.errors import ExitCode, KabuildError
from kabuild.base.suggest import suggest
from kabuild.base.version import __version__

COMMANDS = {
    "test": "Judge tasks: run their gates and print the scoreboard.",
    "watch": "Judge tasks again whenever a file that they read is saved.",
    "compare": "Say which of two agents is better, by how much, and how sure that is.",
    "report": "Show evaluations, side by side, as a page or as data.",
    "publish": "Put an evaluation into one file, for anyone to run again.",
    "replay": "Run a published evaluation again and say what was reproduced.",
    "verify": "Check a published evaluation without running anything of it.",
    "bench": "Show how the times of a task are distributed.",
    "validate": "Say whether tasks deserve to be in a benchmark, and if not, why.",
    "build": "Make targets and show their outputs under out/.",
    "why": "Say why something is cached, or would run.",
    "query": "Ask what targets there are and how they depend on each other.",
    "aquery": "Print actions, with all that their keys are made of.",
    "diff-keys": "Say what differs between two keys.",
    "toolchain": "List, show, pin, fetch, verify and lock what compiles and judges.",
    "cache": "Keep the store small, whole and portable: stats, gc, verify, export, import.",
    "info": "Say where things are: workspace, store, toolchains, rules.",
    "doctor": "Say what this machine can do, and how to get what is missing.",
    "clean": "Remove out/, and with --expunge the store's results.",
    "version": "Print the version.",
}

_GARBAGE = 20_000
"""Objects made between two looks for garbage: a build keeps nearly all it makes to its end, and
Python's own 700 cost a quarter of the time in which a large build finds that nothing changed."""

_INTERNAL = (
    "internal error: kabuild itself is wrong; nothing above says anything about a kernel\n"
    "  please report what you did and the lines above"
)


class LazyGroup(click.Group):
    """A group whose commands live in modules of their own, imported on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order in which people meet them."""
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,
        cmd_name: str,
    ) -> click.Command | None:
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"kabuild.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

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
    kabuild test //tasks/hip2hip/...                  judge all tasks of a family
    kabuild test //tasks/hip2hip/softmax --agent=none the task's own kernel, a control
    kabuild test //tasks/hip2hip/softmax --solution=my.hip
    kabuild query 'deps(//tasks/hip2hip/softmax)'
    """


def run() -> int:
    """Run the command line; one of ``ExitCode``. Raises KeyboardInterrupt."""
    gc.set_threshold(_GARBAGE)
    try:
        # Its value is the code of the command's ``Exit``.
        return int(cli.main(prog_name="kabuild", standalone_mode=False) or ExitCode.OK)
    except click.Abort:  # what click makes of it
        raise KeyboardInterrupt from None
    except Exception as problem:  # noqa: BLE001 - whatever it is, it is told
        if _follows_interrupt(problem):
            raise KeyboardInterrupt from None
        return int(_tell(problem))


def _tell(problem: Exception) -> ExitCode:
    if isinstance(problem, click.ClickException):
        problem.show()
        return ExitCode.COMMAND_LINE
    if isinstance(problem, KabuildError):
        click.echo(f"{click.style('error', fg='red')}: {problem}", err=True)
        return problem.exit_code
    if isinstance(problem, BrokenPipeError):
        sys.stderr.close()
        return ExitCode.OK
    sys.excepthook(type(problem), problem, problem.__traceback__)  # it is ours, and no verdict
    click.echo(_INTERNAL, err=True)
    return ExitCode.INTERNAL


def _follows_interrupt(problem: BaseException) -> bool:
    """Whether it came of cleaning up after one, as where shutil closes a file a second time."""
    found: BaseException | None = problem
    while found is not None and not isinstance(found, KeyboardInterrupt):
        found = found.__cause__ or found.__context__
    return found is not None
