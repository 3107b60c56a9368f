"""``kabuild report``: evaluations side by side, as a page or as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from kabuild.base.errors import BundleError, ExitCode, Reason, UsageError
from kabuild.base.fs import atomic_write
from kabuild.builder import Builder
from kabuild.bundle.archive import SUFFIX
from kabuild.cli.audit import audit
from kabuild.cli.evaluations import evaluated, exit_code, is_directory, is_file, read_file
from kabuild.cli.flags import GateFlags, SolverFlags
from kabuild.cli.judging_flags import JudgingFlags
from kabuild.cli.options import flag, takes
from kabuild.cli.outputs import check_no_source
from kabuild.cli.session import builder
from kabuild.cli.types import SAMPLES, OutputPath, is_same_file, say_of, unwritable
from kabuild.loading import find_workspace
from kabuild.loading.roots import BUILD_FILE
from kabuild.report.arena import RESULT, arena_runs, run_folders, write_arena
from kabuild.report.beside import by_agent, named_apart
from kabuild.report.evaluation import Evaluation
from kabuild.report.exports import render_csv, render_json, render_markdown
from kabuild.store import Store

_READABLE = f"""results can be: a bundle that kabuild publish wrote (*{SUFFIX});
a directory that --format=arena or AgentKernelArena wrote (<task>/{RESULT} in it,
or in each of several directories in it); tasks of this workspace, such as //tasks/..."""

FORMATS = ("html", "json", "csv", "md", "arena", "audit")


@dataclass(frozen=True, kw_only=True)
class ReportFlags(SolverFlags, GateFlags, JudgingFlags):
    """The options of ``kabuild report``."""

    agents: str | None = flag(
        "--agents",
        metavar="NAMES",
        help="Several agents, side by side: none,expert.",
    )
    form: str = flag(
        "--format",
        type=click.Choice(FORMATS),
        default="html",
        show_default=True,
        help="Output format.",
    )
    samples: int | None = flag(
        "--samples",
        type=SAMPLES,
        metavar="N",
        help="With --format=audit: configs to run each task's own kernels on.  [default: 200]",
    )
    output: Path | None = flag(
        "--output",
        "-o",
        type=OutputPath(),
        metavar="FILE",
        help="The file to write.  [default: out/report.html; data goes to stdout]",
    )
    title: str = flag(
        "--title", default="Kernel evaluation", show_default=True, help="The title of the page."
    )


@click.command("report")
@takes(ReportFlags)
def command(options: ReportFlags) -> None:
    """Show evaluations side by side: of tasks in this workspace, and of bundles.

    \b
    kabuild report //tasks/...
    kabuild report //tasks/... --agents=none,expert -o compared.html
    kabuild report theirs.kab ours.kab --format=md
    kabuild report ./workspace_MI300X/run_1 //tasks/...  a run of AgentKernelArena
    kabuild report //tasks/... --format=arena -o run_ours
    kabuild report @kernelbench//... --format=audit -o audit.md

    The page is one file that needs no network: verdicts, times with intervals, differences
    between kernels, provenance. Cached results are reused. Exits with 0 whatever the verdicts
    are, with 1 if an action failed without a verdict (a missing solution), and with 36 after an
    infrastructure failure.
    """
    form, output = options.form, options.output
    _check_output(form, output)
    names = _agents(options)
    files, patterns = _sorted_out(options.patterns)
    if output and any(is_same_file(output, Path(text)) for text in files):
        what = f"--output: '{output}' is one of the results to show"
        raise UsageError(Reason.BAD_FLAG, what, hint="name another file")
    check_no_source("--output", output)
    with builder() as builds:
        if form == "audit":
            _audit(options, files, builds)
            return
        found = [_read(text, builds.store) for text in files]
        failed = False
        if patterns:
            request = replace(options.request(), patterns=tuple(patterns))
            requests = [replace(request, agent=name) for name in names]
            made = evaluated(requests, builds, in_full=True, output=output)
            found += made.evaluations
            failed = made.failed
    found = named_apart(found)
    if form == "arena":
        _write_runs(found, output)
    else:
        _write(_renderer(form, options.title)(found), form, output)
    if (code := exit_code(found, failed=failed)) != ExitCode.OK:
        raise click.exceptions.Exit(int(code))


def _audit(options: ReportFlags, files: Sequence[str], builds: Builder) -> None:
    """Write the page about benchmarks. Raises UsageError for files of results."""
    if files:
        what = f"{files[0]} holds results; an audit is of imported tasks"
        raise UsageError(Reason.BAD_FLAG, what, hint="name tasks: @kernelbench//...")
    request = replace(options.request(), samples=options.samples)
    text, code = audit(request, builds, options.output)
    if code != ExitCode.INTERRUPTED:
        _write(text, options.form, options.output)
    if code in (ExitCode.ENVIRONMENT, ExitCode.INTERRUPTED):
        raise click.exceptions.Exit(code)


def _agents(options: ReportFlags) -> list[str | None]:
    """Whose kernels to judge. Raises UsageError if a flag would have no effect."""
    names: list[str | None] = [name for name in (options.agents or "").split(",") if name]
    if options.agents is not None and not names:
        raise UsageError(
            Reason.BAD_FLAG,
            f"--agents names no agent: '{options.agents}'",
            hint="--agents=none,expert judges several agents; without the flag, the default one",
        )
    if names and (options.agent or options.solution):
        other = "--agent" if options.agent else "--solution"
        raise UsageError(
            Reason.BAD_FLAG,
            f"--agents and {other} exclude each other",
            hint="--agents=none,expert judges several agents; --solution one kernel",
        )
    return names or [options.agent]


def _check_output(form: str, output: Path | None) -> None:
    """Refuse an output that does not fit the format, before anything runs."""
    if form == "arena" and output is None:
        raise UsageError(
            Reason.BAD_FLAG, "--format=arena writes a directory", hint="name it: --output=DIR"
        )
    if output is not None and output.exists() and output.is_dir() != (form == "arena"):
        kind = "a directory" if output.is_dir() else "no directory"
        raise UsageError(Reason.BAD_FLAG, f"--output: '{output}' is {kind}")


def _sorted_out(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the arguments into files of results and target patterns.

    Raises UsageError for a directory that holds neither, and for an empty argument.
    """
    files: list[str] = []
    patterns: list[str] = []
    for text in arguments:
        path = Path(text)
        if not text:
            raise UsageError(Reason.BAD_FLAG, "an argument is empty", hint=_READABLE)
        if is_file(text):
            files.append(text)
        elif text.startswith(("//", "-", ":")) or not is_directory(text):
            patterns.append(text)
        elif runs := arena_runs(path):
            files += map(str, runs)
        elif (path / BUILD_FILE).is_file():
            patterns.append(text)
        else:
            raise UsageError(
                Reason.BAD_FLAG,
                f"{text} is neither a package nor a directory with results",
                hint=_READABLE,
            )
    return files, patterns


def _read(text: str, store: Store) -> Evaluation:
    """The evaluations in a bundle or a run; errors name the file. Raises KabuildError."""
    try:
        return by_agent(read_file(text, store), text)
    except BundleError as error:
        if error.message.startswith(str(Path(text))):
            raise
        raise BundleError(error.reason, f"{text}: {error.message}", hint=error.hint) from None


def _write_runs(evaluations: Sequence[Evaluation], output: Path | None) -> None:
    """Write a run directory; for several evaluations, one for each below it."""
    assert output is not None, "_check_output says so"
    for item, directory in zip(evaluations, run_folders(evaluations, output), strict=True):
        try:
            write_arena(item, directory)
        except OSError as error:
            raise unwritable("--output", output, error) from None
    click.echo(str(output))


def _write(text: str, form: str, output: Path | None) -> None:
    if output is None and form == "html":
        output = find_workspace(Path.cwd()) / "out" / "report.html"
        output.parent.mkdir(exist_ok=True)
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        atomic_write(output, text.encode())
    except OSError as error:
        raise unwritable("--output", output, error) from None
    say_of(output, str(output))


def _renderer(form: str, title: str) -> Callable[[Sequence[Evaluation]], str]:
    if form == "html":
        from kabuild.report.page.render import render_page

        return lambda evaluations: render_page(evaluations, title=title)
    return {"json": render_json, "csv": render_csv, "md": render_markdown}[form]
