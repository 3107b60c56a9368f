"""What the perf gates of tasks are told, without running any program."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence

from kabuild.analysis import analyze
from kabuild.loading import Loader, expand, load_workspace
from kabuild.model.action import Literal, Source
from kabuild.model.options import Options

from .own_tasks import PLATFORMS, ROOT
from .toolchains import any_toolchain

sys.path[:0] = [str(ROOT / "rules/harness/tools"), str(ROOT / "kabuild/sandbox")]

from base.spec import Spec, parse_spec
from truth.side import Launching, Running


class NoRunners(Launching):
    """Refuses to start any, since here the oracle alone is looked at."""

    def open(self, *_: object, **__: object) -> Running:
        raise AssertionError("no program is run here")


def specs_of(platform: str, tasks: Sequence[str]) -> Iterator[tuple[str, Spec]]:
    """The perf gate's spec of each task, by label."""
    loader = Loader(load_workspace(ROOT))
    options = Options(PLATFORMS[platform], loader.workspace.agent_label("none"))
    chosen = expand(loader, list(tasks))
    for action in analyze(loader, chosen, options, resolve=any_toolchain).graph:
        if action.gate == "perf":
            inputs = dict(action.inputs)
            said, reference = inputs["spec.json"], inputs["task/reference.py"]
            assert isinstance(said, Literal)
            assert isinstance(reference, Source)
            value = {**json.loads(said.data), "reference": str(ROOT / reference.path)}
            for side in ("candidate", "baseline"):
                value[side]["path"] = value["reference"]  # whose digest seeds are made of
            value["compiled"] = ""
            yield str(action.label), parse_spec(value)
