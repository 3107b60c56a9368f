"""Benchmarks whose tasks are definitions: JSON with a reference, called with ``run(*inputs)``."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor

from imported.boundary import DTYPES, LeftOutError, sources
from imported.constants import without_docstrings
from imported.definition import RUN, Definition, Table, Workload, read_workloads
from imported.fitting import evaluate
from imported.functions import Learnt, Told, Values, inputs_of, learn, run, sized, state_of, tensors
from imported.modules import under_seed
from imported.original_definitions import Question
from imported.original_functions import results_of
from imported.starting_points import first_steady

DRAWN = "sources"
"""The setting with the sources of the inputs, in their order."""

_ELEMENTS = 1 << 18
"""Elements of a drawn config's tensors on ``cpu``, unless constant axes need more."""

Part = Callable[[Values, Told], dict[str, Tensor]]
Generate = Callable[[Definition, Workload, Table, str], Sequence[Any]]
"""The benchmark's own inputs, on a device; with the names of the reference's module."""


@dataclass(frozen=True)
class Defined:
    """A benchmark of this form.

    Attributes:
        home: the directory that has ``original``, and ``parameters.json`` where tasks are judged.
        adapter, title: what the adapter and the benchmark are called.
        zeroed: whether memory that a solution writes its results into is zero before.
    """

    home: Path
    adapter: str
    title: str
    generate: Generate
    zeroed: bool

    def capture(self, name: str, files: Sequence[str]) -> Table:
        """The facts of a task for the lock: a definition, its workloads, the benchmark's own code.

        Raises LeftOutError.
        """
        definition = self._definition(files[0])
        if len(files) < 2 or not files[1].endswith(".jsonl"):
            raise LeftOutError("NO_WORKLOADS", "it has no workloads, which say its sizes")
        workloads = read_workloads(self.home / "original" / files[1], definition.inputs)
        usable = _usable(definition, workloads)
        definition.check_constraints(usable[0].axes)
        names = definition.load()
        settings = [_settings(definition, one) for one in usable]
        learnt, settings = first_steady(settings, lambda s: self._learn(definition, names, s))
        attrs = learnt.declared(settings)
        _check_outputs(definition, attrs)
        tolerance = next(w.tolerance for w in usable if _settings(definition, w) == settings[0])
        wanted = f"Write a function {RUN} that computes what the one of {files[0]} does, "
        brief = f"{wanted}from the same arguments, and is faster. ({self.title}, {name})"
        return {
            "origin": _origin(definition),
            "attrs": {
                **attrs,
                **sources(self.adapter, files),
                "call": self._call(definition, attrs),
                "entry": RUN,
                "member": "reference",
                "layout": dict.fromkeys(attrs["outputs"], "any"),
                "limits": _limits(attrs),
                "adapter": "//rules/imports/tools/destinations.py",
                "parameters": learnt.parameters(
                    settings[0], files=[*files], tolerance=dict(tolerance)
                ),
                "brief": f"{definition.description} {brief}".strip(),
            },
        }

    def inputs(self, config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
        """The tensors of a call, from the benchmark's own functions under a seed."""
        return self._drawn(config, generator, inputs_of)

    def state(self, config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
        """The tensors that the benchmark leaves constant, moved."""
        return self._drawn(config, generator, state_of)

    def reference(self, **given: Any) -> Table:
        """The reference's results, in the precision of its arguments."""
        told, definition, names = self._told()
        values = self._values(definition, names, sized(told, given), told["device"])
        function = definition.function(names)
        return run(function, values, {**given, **given.get("state", {})}, told)

    def original(self, config: Mapping[str, Any], seeds: Mapping[str, int]) -> Table:
        """The original's draws under these seeds, and its results."""
        told, definition, names = self._told()
        torch.manual_seed(seeds["inputs"])
        device = str(torch.get_default_device())
        values = self._values(definition, names, sized(told, config), device)
        found = tensors(values)
        parts = {part: {n: found[n].clone() for n in told[part]} for part in ("inputs", "state")}
        return {**parts, "results": results_of(definition.function(names), values, told)}

    def question(self, config: Mapping[str, Any]) -> Question:
        """What the benchmark's own check asks for a config."""
        told, definition, names = self._told()
        workload = _workload(definition, sized(told, config))
        draw = partial(self.generate, definition, workload, names)
        return Question(definition, names, told["tolerance"], draw)

    def op_type(self, file: str) -> str:
        """The type of operation of the definition in a file."""
        return self._definition(file).op_type

    def _learn(self, definition: Definition, names: Table, shown: Table) -> Learnt:
        still = self._constant(definition, names, shown)

        def call(moved: Mapping[str, int], device: str) -> tuple[Values, list[Tensor]]:
            values = self._values(definition, names, {**shown, **moved}, device)
            return values, [tensor for name, tensor in tensors(values).items() if name not in still]

        return learn(
            definition.function(names),
            call,
            {name: shown[name] for name in _sizes(definition).values()},
            RUN,
            devices=("meta", "cpu"),
            fixed=None,
        )

    def _constant(self, definition: Definition, names: Table, shown: Table) -> set[str]:
        """The inputs all of whose elements are alike, such as weights of one."""
        small = {n: min(shown[n], 16) for n in _sizes(definition).values()}
        try:
            values = self._values(definition, names, {**shown, **small}, "cpu")
        except Exception:  # noqa: BLE001 - sizes that the benchmark's code does not take
            values = self._values(definition, names, shown, "cpu")
        found = tensors(values).items()
        return {n for n, t in found if t.numel() > 1 and bool((t == t.flatten()[0]).all())}

    def _call(self, definition: Definition, attrs: Table) -> str:
        """The call of the function that makes returning functions of all solutions."""
        targets, _, call = attrs["call"].partition(" = ")
        arguments = call.removeprefix(RUN)
        outputs = {name: _axes(text) for name, text in attrs["outputs"].items()}
        said = ", ".join(f"{n!r}: ({kind}, {axes!r})" for n, (kind, axes) in outputs.items())
        sizes = ", ".join(f"{name!r}: {name}" for name in attrs["dims"])
        made = f"{len(definition.inputs)}, {{{said}}}, {{{sizes}}}, zeroed={self.zeroed}"
        return f"{targets} = destinations({made}){arguments}"

    def _values(self, definition: Definition, names: Table, settings: Table, device: str) -> Table:
        """The arguments of one call by name, drawn under the seed of the global generator."""
        workload = _workload(definition, settings)
        definition.check_constraints(workload.axes)
        found = self.generate(definition, workload, names, device)
        return dict(zip(definition.inputs, found, strict=True))

    def _drawn(
        self,
        config: Mapping[str, Any],
        generator: Generator,
        part: Callable[[Values, Told], dict[str, Tensor]],
    ) -> dict[str, Tensor]:
        told, definition, names = self._told()
        settings, device = sized(told, config), str(generator.device)
        return under_seed(
            generator, lambda: part(self._values(definition, names, settings, device), told)
        )

    def _told(self) -> tuple[Table, Definition, Table]:
        told: Table = json.loads((self.home / "parameters.json").read_text())
        definition = self._definition(told["files"][0])
        return told, definition, definition.load()

    def _definition(self, file: str) -> Definition:
        return Definition.read(self.home / "original" / file)


def _usable(definition: Definition, workloads: Sequence[Workload]) -> list[Workload]:
    """The workloads whose inputs can be drawn, the largest first. Raises LeftOutError."""
    if not workloads:
        raise LeftOutError("NO_WORKLOADS", "it has no workloads, which say its sizes")
    usable = [one for one in workloads if "safetensors" not in one.sources.values()]
    if not usable:
        stored = [name for name, kind in workloads[0].sources.items() if kind == "safetensors"]
        others = f" and {len(stored) - 1} more" if len(stored) > 1 else ""
        what = f"all its workloads take '{stored[0]}'{others} from safetensors files of a dataset"
        raise LeftOutError("NEEDS_DATA", what)
    for name, one in definition.inputs.items():
        if one.shape is None and any(w.sources[name] != "scalar" for w in usable):
            what = f"its number '{name}' is drawn like a tensor, and a call's numbers are declared"
            raise LeftOutError("NUMBER_DRAWN", what)
    return sorted(usable, key=lambda one: _elements(definition, one.axes), reverse=True)


def _elements(definition: Definition, axes: Mapping[str, int]) -> int:
    return sum(prod(shape) for shape in definition.shapes(axes).values() if shape is not None)


def _sizes(definition: Definition) -> dict[str, str]:
    """The variable axes, with the settings that they are: no name of another argument."""
    taken = {name.lower() for name in (*definition.inputs, *definition.outputs)} | {"t"}
    return {axis: f"{axis}_size" if axis.lower() in taken else axis for axis in definition.variable}


def _settings(definition: Definition, workload: Workload) -> Table:
    """The settings of a workload: sizes, numbers, and where the inputs come from."""
    try:
        sizes = {name: workload.axes[axis] for axis, name in _sizes(definition).items()}
    except KeyError as error:
        raise LeftOutError("DOES_NOT_LOAD", f"a workload has no size for axis {error}") from None
    return {**sizes, **workload.numbers, DRAWN: " ".join(workload.sources.values())}


def _workload(definition: Definition, settings: Table) -> Workload:
    """The workload of some settings."""
    drawn = dict(zip(definition.inputs, settings[DRAWN].split(), strict=True))
    axes = {axis: int(settings[name]) for axis, name in _sizes(definition).items()}
    numbers = {name: settings[name] for name, kind in drawn.items() if kind == "scalar"}
    return Workload(axes, drawn, numbers, {})


def _axes(text: str) -> tuple[str, list[str]]:
    """The element type and the axes of a declared tensor: ``T[rows, 2 * cols]``."""
    kind, _, rest = text.partition("[")
    return kind, [axis for axis in rest.removesuffix("]").split(", ") if axis]


def _check_outputs(definition: Definition, attrs: Table) -> None:
    """Compare what the reference returns with what its definition says. Raises LeftOutError."""
    for name, text in attrs["outputs"].items():
        (kind, axes), one = _axes(text), definition.outputs.get(name)
        if one is not None and DTYPES.get(one.dtype) != kind:
            said = str(one.dtype).removeprefix("torch.")
            what = f"its reference returns '{name}' as {text}, and its definition says {said}"
            raise LeftOutError("REFERENCE_DIFFERS", what)
        if one is not None and len(axes) != len(one.shape or ()):
            what = f"its reference returns '{name}' with {len(axes)} axes, and its definition says "
            raise LeftOutError("REFERENCE_DIFFERS", f"{what}{len(one.shape or ())}")


def _limits(attrs: Table) -> Table:
    """Caps of drawn configs, where constant axes make tensors larger than is usual."""
    small = attrs["platform_configs"]["cpu"][0]
    declared = [*attrs["inputs"].values(), *attrs["state"].values(), *attrs["outputs"].values()]
    largest = max(prod(evaluate(axis, small) for axis in _axes(text)[1]) for text in declared)
    return {"cpu": {"elements": largest}} if largest > _ELEMENTS else {}


def _origin(definition: Definition) -> str:
    """The text whose hash finds equal tasks: arguments, constants and reference."""
    arguments = [*definition.inputs.items(), *definition.outputs.items()]
    tensors_ = [(name, one.shape, str(one.dtype)) for name, one in arguments]
    axes = [sorted(definition.constant.items()), definition.variable, definition.derived]
    text = ast.dump(without_docstrings(ast.parse(definition.reference)))
    return json.dumps([tensors_, axes, text])
