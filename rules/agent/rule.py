"""Agents: what turns a task into a solution."""

from __future__ import annotations

from kabuild.rule import Context, Rule, attr

from ..harness.providers import AgentInfo


def implement(ctx: Context) -> None:
    """An agent makes nothing by itself; tasks run it."""
    ctx.provide(AgentInfo(ctx.label.name, ctx.attrs["replays"]))


RULE = Rule(
    kind="agent",
    doc="Turns a task into a solution.",
    implement=implement,
    attrs={
        "replays": attr.string(
            "The directory below a task's solutions that is handed in; "
            "empty for the task's own kernel.",
            default="",
        ),
    },
)
