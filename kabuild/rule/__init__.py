"""Layer 2b: the public API for rules. A rule imports from here and from nothing below.

A rule file in full::

    from kabuild.rule import Context, Rule, attr

    def implement(ctx: Context) -> None:
        ctx.action(
            "",
            argv=("/bin/cp", "in/text", "out/text"),
            inputs={"in/text": ctx.attrs["text"]},
            outputs=("text",),
            mnemonic="Copy",
        )

    RULE = Rule(
        kind="copy",
        doc="Copies one file.",
        implement=implement,
        attrs={"text": attr.file("The file to copy.", required=True)},
    )
"""

from kabuild.base.errors import AnalysisError, Position, Reason
from kabuild.base.suggest import suggest
from kabuild.model.action import (
    VERDICT_FILE,
    Action,
    Artifact,
    Limits,
    Literal,
    Name,
    Output,
    Resources,
    Source,
    Toolchain,
)
from kabuild.model.gate import Gate, Role, When
from kabuild.model.label import Label
from kabuild.model.options import Options
from kabuild.model.platform import Platform, PlatformSpec
from kabuild.rule import attr
from kabuild.rule.attr import AttributeProblem
from kabuild.rule.context import Context, Provider
from kabuild.rule.rule import Rule

__all__ = [
    "VERDICT_FILE",
    "Action",
    "AnalysisError",
    "Artifact",
    "AttributeProblem",
    "Context",
    "Gate",
    "Label",
    "Limits",
    "Literal",
    "Name",
    "Options",
    "Output",
    "Platform",
    "PlatformSpec",
    "Position",
    "Provider",
    "Reason",
    "Resources",
    "Role",
    "Rule",
    "Source",
    "Toolchain",
    "When",
    "attr",
    "suggest",
]
