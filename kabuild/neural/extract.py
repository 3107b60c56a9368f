"""From a model to task packages that ``validate`` admits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kabuild.base.errors import Reason, UsageError
from kabuild.base.fs import atomic_write
from kabuild.base.suggest import suggest
from kabuild.builder import Builder
from kabuild.loading import find_workspace
from kabuild.loading.request import Request
from kabuild.model.gate import Pick
from kabuild.model.label import Label
from kabuild.neural.packages import (
    FILE,
    STEP,
    WHOLE,
    Extracted,
    Known,
    Place,
    check_free,
    files_of,
    package_of,
    remove_package,
    undone,
    write_packages,
)
from kabuild.neural.profile import Profile, Row
from kabuild.neural.running import ModelFile, finished, run_tool, unreadable
from kabuild.neural.values import MALFORMED
from kabuild.pipeline import Summary


@dataclass(frozen=True)
class Outcome:
    """What became of the chosen parts.

    Attributes:
        admitted: the parts that are tasks now.
        left_out: by part, why it is not a task.
    """

    admitted: tuple[Row, ...]
    left_out: dict[str, str] = field(hash=False)
    package: str
    summary: Summary


def profile_of(model: ModelFile, request: Request, builds: Builder) -> Profile:
    """The profile of a model, perhaps from the cache. Raises KabuildError."""
    answer = run_tool("model_profile", model, {}, request, builds)
    try:
        return Profile.read(answer.facts)
    except MALFORMED as error:
        raise unreadable(model, error) from None


def chosen(profile: Profile, top: int, names: Sequence[str]) -> list[Row]:
    """The parts called ``names``, else the ``top`` with the largest share. Raises UsageError."""
    known = {row.name: row for row in profile.parts}
    for name in names:
        if name not in known:
            hint = suggest(name, known) or f"parts: {', '.join(known)}"
            raise UsageError(Reason.BAD_FLAG, f"the model has no part '{name}'", hint=hint)
    return [known[name] for name in names] if names else list(profile.parts[:top])


def destination(directory: Path, request: Request) -> str:
    """The package of a directory that tasks may be written into. Raises UsageError."""
    package = package_of(directory, find_workspace(request.cwd))
    try:
        Label.parse(f"//{package}/{WHOLE}")
    except UsageError as error:
        what = f"--output: tasks cannot be in {directory}: {error.message}"
        hint = "use letters without accents, digits, '_', '-' and '.', as in tasks/my_model"
        raise UsageError(Reason.BAD_FLAG, what, hint=hint) from None
    check_free(directory)
    return package


def extract(
    model: ModelFile, rows: Sequence[Row], directory: Path, request: Request, builds: Builder
) -> Outcome:
    """Write the parts ``rows`` as tasks into ``directory``, and remove those not admitted.

    Raises KabuildError.
    """
    package = destination(directory, request)
    wanted = {"parts": tuple(row.name for row in rows), "title": model.name}
    answer = run_tool("model_tasks", model, wanted, request, builds)
    try:
        found = Extracted.read(answer.facts)
        kept = _known(model, rows, found, answer.platform.name)
    except MALFORMED as error:
        raise unreadable(model, error) from None
    left_out = {name: f"{reason}: {why}" for name, (reason, why) in found.left_out.items()}
    tasks = (*(part.name for part in found.parts), WHOLE, STEP)
    with undone(directory, (FILE, *(file for name in tasks for file in files_of(name)))):
        write_packages(directory, model.text, found)
        atomic_write(directory / FILE, kept.text().encode())
        patterns = tuple(f"//{package}/{part.name}" for part in found.parts)
        validating = replace(request, patterns=patterns, pick=Pick.VALIDATE)
        judged = finished(builds.run(validating))
        for result in judged.table:
            if gate := result.problem:
                left_out[result.label.name] = f"{gate.reason or gate.word}: {gate.summary}"
                remove_package(directory, result.label.name)
        places = {n: replace(p, is_task=n not in left_out) for n, p in kept.parts.items()}
        atomic_write(directory / FILE, replace(kept, parts=places).text().encode())
    admitted = tuple(row for row in rows if row.name not in left_out)
    return Outcome(admitted, left_out, package, judged)


def _known(model: ModelFile, rows: Sequence[Row], found: Extracted, platform: str) -> Known:
    shares = {row.name: (row.share, row.roof_share) for row in rows}
    parts = {
        part.name: Place(*shares[part.name], part.calls, is_task=False) for part in found.parts
    }
    return Known(model.name, platform, parts, found.graph)
