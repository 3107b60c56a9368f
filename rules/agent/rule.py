"""Agents, which turn tasks into solutions."""

from __future__ import annotations

from collections.abc import Mapping

from kabuild.rule import AnalysisError, Artifact, Context, Reason, Rule, Source, Toolchain, attr

from ..harness.providers import AgentInfo, HipInfo
from .definition import BUDGETS, check_agent, definition

CLI_ROLE = "agent-cli"


def implement(ctx: Context) -> None:
    """Agents have no actions; tasks run them."""
    attrs = ctx.attrs
    if attrs["replays"] is not None:
        ctx.provide(AgentInfo(ctx.label.name, replays=attrs["replays"]))
        return
    toolchains: tuple[Toolchain, ...] = ()
    if attrs["cli"] is not None:
        cli = ctx.toolchain(attrs["cli"], secrets=attrs["secrets"])
        if cli.role != CLI_ROLE:
            raise AnalysisError(
                Reason.NO_TOOLCHAIN,
                f"{ctx.label.short} cannot run {attrs['cli'].short}: its role is '{cli.role}'",
                position=ctx.target.position,
                hint=f"the command lines of agents have the role '{CLI_ROLE}'",
            )
        toolchains = (cli,)
    ctx.provide(
        AgentInfo(
            ctx.label.name,
            definition=definition(attrs, "".join(f"${{toolchain:{t.name}}}" for t in toolchains)),
            files=_files(ctx),
            prompt=attrs["prompt"],
            toolchains=toolchains,
            secrets=attrs["secrets"],
            network=attrs["network"] in {"proxy", "host"},
            seconds=attrs["seconds"],
            memory=attrs["memory"] << 20,
            resumes=attrs["resumes"],
            counts=ctx.provider(attrs["counts"], HipInfo) if attrs["counts"] else None,
        )
    )


def _files(ctx: Context) -> Mapping[str, Artifact]:
    """Its files below {files}: its own, and those of the agent that it builds on."""
    borrowed = ctx.attrs["files_of"]
    others = ctx.provider(borrowed, AgentInfo).files if borrowed else {}
    return {**others, **_by_name(ctx, ctx.attrs["files"])}


def _by_name(ctx: Context, files: tuple[Source, ...]) -> Mapping[str, Source]:
    """The agent's own files by their path in its package."""
    prefix = f"{ctx.label.package}/" if ctx.label.package else ""
    return {source.path.removeprefix(prefix): source for source in files}


RULE = Rule(
    kind="agent",
    doc="Turns a task into a solution.",
    implement=implement,
    attrs={
        "replays": attr.string(
            "The directory below a task's solutions that is handed in, instead of running "
            "anything; empty for the task's own kernel."
        ),
        "command": attr.strings("The command, one argument each, with {placeholders}; no shell."),
        "files": attr.files("Files of this package that the command needs; it sees {files}."),
        "files_of": attr.label("Another agent, whose files it also sees, at the same places."),
        "prompt": attr.file(
            "A template that replaces kabuild's, with {brief}, {kernel}, {seconds} and {turns}."
        ),
        "prompt_by": attr.string(
            "How the prompt gets to the command: as {prompt} in an argument, on stdin, or in "
            "the file {prompt_file}.",
            default="file",
            values=("argument", "stdin", "file"),
        ),
        "model": attr.string("The model, which the command gets as {model}.", default=""),
        "env": attr.table("Environment variables, with {placeholders}."),
        "secrets": attr.strings(
            "Names of variables of your environment that it gets. Their values are in no "
            "key, and are removed from everything that is kept."
        ),
        "network": attr.string(
            "none; loopback (its own); proxy (loopback, and 'hosts' through a proxy); host "
            "(all that this machine reaches).",
            default="none",
            values=("none", "loopback", "proxy", "host"),
        ),
        "hosts": attr.strings(
            "Hosts that the proxy connects to, such as api.example.com:443; all are needed."
        ),
        "service": attr.strings(
            "A command that serves the loopback: it accepts on descriptor 3, outside of the "
            "agent's sandbox, and the agent reaches it at {service}."
        ),
        "seconds": attr.number("Wall time.", default=3600.0, check=BUDGETS["seconds"].check),
        "turns": attr.integer(
            "The most turns, if it reports them.", default=0, check=BUDGETS["turns"].check
        ),
        "tokens": attr.integer(
            "The most tokens, likewise.", default=0, check=BUDGETS["tokens"].check
        ),
        "dollars": attr.number(
            "The most dollars, likewise.", default=0.0, check=BUDGETS["dollars"].check
        ),
        "memory": attr.integer("Memory in MiB.", default=8192, check=BUDGETS["memory"].check),
        "cli": attr.label("The toolchain with its command line, at {cli}; role agent-cli."),
        "version_command": attr.strings("Prints its version, which is recorded."),
        "version": attr.string("Text that its output must contain.", default=""),
        "resumes": attr.boolean(
            "Whether it keeps a {journal}: a file that an interrupted run leaves to the next run "
            "of the same trial.",
            default=False,
        ),
        "counts": attr.label(
            "What counts memory accesses for it on GPUs' platforms, as on cpu: "
            "//toolchains/hip:{platform}_counter."
        ),
        "adapter": attr.string(
            "The adapter that reads its output: adapters/NAME.py, or NAME.py of its files.",
            default="plain",
        ),
    },
    check=check_agent,
)
