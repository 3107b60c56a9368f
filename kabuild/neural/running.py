"""Running the tools of ``rules/model`` on a user's file, in a sandbox, cached by content."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kabuild.base.bounded_json import bounded_json
from kabuild.base.errors import InfraError, Interrupted, LoadError, Position, Reason, UsageError
from kabuild.base.reading import read_plain
from kabuild.builder import Builder
from kabuild.execution.isolation import require_sandbox
from kabuild.loading import Loader, Package, find_workspace, load_workspace
from kabuild.loading.request import Request
from kabuild.model.action import Literal
from kabuild.model.label import Label
from kabuild.model.platform import Platform
from kabuild.model.result import Outcome
from kabuild.model.target import Target
from kabuild.neural.values import MALFORMED, text
from kabuild.pipeline import Summary, plan, settle

FACTS = "facts.json"
PACKAGE = "model"
_MOST_MODEL = 4 << 20
_CUT = 700
"""The characters that tools keep of an exception's message."""
_LINE = re.compile(
    r"(?:^|(?<=refuses it: ))line (\d{1,9}): |\s*\((?:[^\s()]*/)?model\.py, line (\d{1,9})\)$"
)
"""How tools name a line of the user's file, which is called ``model.py`` where they run."""
_EXIT = re.compile(r"exit code \d+")
_ENDS = "a model file is only imported: see that it does not call sys.exit() or os._exit()"
_FORM = "a model file has build() and inputs(generator): kabuild's docs/model.md shows one"
_EXPORT = "for the whole error, call torch.export.export(build(), inputs(torch.Generator()))"
_CALL = "for the whole error, call build()(*inputs(torch.Generator())) in a Python of your own"
_PIN = "pin it in the workspace's toolchains/python, as kabuild's docs/importing.md shows"
_HINTS = {
    "NO_ENTRY": _FORM,
    "NO_MODULE": _FORM,
    "ARGUMENT_NOT_TENSOR": _FORM,
    "RESULT_NOT_TENSORS": _FORM,
    "NEEDS_PACKAGE": _PIN,
}
"""What to do about a class of models, where their message does not say it."""
_LINELESS = {"DOES_NOT_LOAD": _CALL, "DOES_NOT_RUN": _CALL, "NOT_EXPORTABLE": _EXPORT}
"""The same, where no line of the file is known."""
_MOST_FACTS = 32 << 20


@dataclass(frozen=True)
class ModelFile:
    """The file that defines a model.

    Attributes:
        path: as the user typed it.
        name: of the model: the file's, as an identifier.
        text: its content.
    """

    path: Path
    name: str
    text: bytes = field(repr=False)


@dataclass(frozen=True)
class Answer:
    """What a tool found, and where it ran."""

    facts: Mapping[str, Any] = field(hash=False)
    platform: Platform
    cached: bool


class ModelEndedError(LoadError):
    """The model's process ended before it had answered, by itself or for a limit."""


def read_model(path: Path) -> ModelFile:
    """The file at ``path``. Raises UsageError."""
    try:
        text = read_plain(path, _MOST_MODEL)
        text.decode()
    except OSError as error:
        what = f"{path} cannot be read: {error.strerror}"
        raise UsageError(Reason.BAD_FLAG, what) from None
    except UnicodeDecodeError:
        raise UsageError(Reason.BAD_FLAG, f"{path} is not UTF-8 text") from None
    name = re.sub(r"\W", "_", path.stem.lower(), flags=re.ASCII).strip("_")
    if not re.fullmatch(r"[a-z]\w{0,63}", name, flags=re.ASCII):
        what = f"'{path.stem}' cannot name a model: begin it with a letter"
        raise UsageError(Reason.BAD_FLAG, what)
    return ModelFile(path, name, text)


def run_tool(
    kind: str,
    model: ModelFile,
    attrs: Mapping[str, Any],
    request: Request,
    builds: Builder,
    *,
    answering: str = "",
) -> Answer:
    """What the tool ``kind`` says of a model.

    A tool that never runs the model itself has a sub-target ``answering`` that does. Raises
    LoadError where the model is refused, ModelEndedError where that sub-target fails, InfraError
    where the machine failed or has no sandbox, and Interrupted.
    """
    require_sandbox("a model's code", waived=not request.hermetic)
    request = replace(request, judge=False, solution=None)
    loader = Loader(load_workspace(find_workspace(request.cwd)))
    label = Label(f"{PACKAGE}/{model.name}", kind)
    position = Position(str(model.path))
    parts = (answering,) if answering else ()
    target = Target(label, kind, {"model": Literal(model.text), **attrs}, position, parts)
    loader.add(Package(label.package, "workspace", {label.name: target}, str(model.path)))
    planned = plan(request, settle(request, loader, (label,)), builds.store)
    settled = finished(builds.execute(request, planned)).settled
    item = settled[label]
    if answering and (answers := settled[label.sub(answering)]).outcome is Outcome.FAILED:
        raise ModelEndedError(
            Reason.BAD_RULE,
            answers.message.strip() or "its process ended without an answer",
            position=position,
        )
    if item.outcome is Outcome.INFRA:
        raise InfraError(Reason.ACTION_CRASHED, item.message)
    file = item.result.file(FACTS) if item.result and item.outcome is Outcome.DONE else None
    if item.lacking:
        what = "the model's code ended the process, as sys.exit() does"
        raise refused(model, what, hint="take out what ends it: a model file is only imported")
    if file is None:
        why = item.message.strip().partition("\n")[0] or "it ended without a result"
        hint = _ENDS if _EXIT.fullmatch(why) else ""
        raise refused(model, f"the model cannot be run: {why}", hint=hint)
    if file.digest.size > _MOST_FACTS:
        raise refused(model, "what was found out about it is too large")
    facts = _read(model, builds.store.cas.get(file.digest))
    if absent := facts.get("refused"):
        raise refused_by_tool(model, absent["reason"], absent["why"])
    return Answer(facts, planned.loaded.options.platform, item.cached)


def finished(summary: Summary) -> Summary:
    """The summary of a build that came to its end. Raises Interrupted."""
    if summary.interrupted:
        what = "interrupted before it was done"
        hint = "the same command goes on: what ended is cached"
        raise Interrupted(Reason.INTERRUPTED, what, hint=hint)
    return summary


def _read(model: ModelFile, data: bytes) -> Mapping[str, Any]:
    """The facts that a sandbox wrote. Raises LoadError for another form."""
    try:
        facts = bounded_json(data, non_finite=True)  # constants of a model, such as -inf
        absent = facts.get("refused", {"reason": "", "why": ""})
        text(absent["reason"] + absent["why"])
    except MALFORMED as error:
        raise unreadable(model, error) from None
    found: Mapping[str, Any] = facts
    return found


def refused(model: ModelFile, why: str, *, line: int = 0, hint: str = "") -> LoadError:
    """The error for a model that cannot be taken apart."""
    position = Position(str(model.path), line)
    return LoadError(Reason.BAD_RULE, why, position=position, hint=hint)


def refused_by_tool(model: ModelFile, reason: str, why: str) -> LoadError:
    """The error for a model that a tool refused: the line that it names is of the user's file."""
    found = _LINE.search(why)
    line = int(found[1] or found[2]) if found else 0
    if found:
        why = f"{why[: found.start()]}{why[found.end() :]}".strip()
    hint = _HINTS.get(reason, "") or ("" if line else _LINELESS.get(reason, ""))
    return refused(model, f"{reason}: {told(why)}", line=line, hint=hint)


def told(message: str) -> str:
    """A message, or where a tool cut it for its length, its whole sentences or words."""
    if len(message) < _CUT or message.endswith((".", ")")):
        return message
    sentences, _, _ = message.rpartition(". ")
    if len(sentences) > _CUT // 2:
        return f"{sentences}."
    return f"{message.rpartition(' ')[0] or message} …"


def unreadable(model: ModelFile, error: Exception) -> LoadError:
    """The error for facts of another form, which only a hostile model writes."""
    return refused(model, f"what was written about it cannot be read: {type(error).__name__}")
