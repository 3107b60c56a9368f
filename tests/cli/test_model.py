"""``kabuild model`` by the real program, on a model of a few operators."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import torch

from kabuild.base.errors import ExitCode, Interrupted
from kabuild.builder import Builder
from kabuild.cli.session import builder
from kabuild.loading.request import Request
from kabuild.neural.assemble import assemble
from kabuild.neural.extract import chosen, extract, profile_of
from kabuild.neural.likeness import likeness_of
from kabuild.neural.packages import Known
from kabuild.neural.running import ModelFile, read_model
from kabuild.neural.training import training_of
from kabuild.neural.verify import Verified, compared, render
from tests.testkit.cli import CliWorkspace, Ran

from .conftest import QUICK
from .net_model import FASTER, MODEL, OFF, WRONG


@pytest.fixture(scope="module")
def place(kept_workspace: CliWorkspace) -> CliWorkspace:
    kept_workspace.write("net.py", MODEL)
    return kept_workspace


@pytest.fixture(scope="module")
def profiled(place: CliWorkspace) -> Ran:
    return place.run("model", "profile", "net.py", "--json")


def test_a_profile_has_each_part_once(profiled: Ran) -> None:
    found = profiled.json
    parts = {part["name"]: part for part in found["parts"]}

    assert parts.keys() == {"norm", "linear", "sub"}
    assert parts["norm"]["operators"] == ["pow", "mean", "add", "rsqrt", "mul", "mul"]
    assert parts["norm"]["kind"] == "group"
    assert parts["norm"]["shapes"] == [{"inputs": [[8, 16], [16]], "calls": 2}]
    assert parts["norm"]["modules"] == ["norms.0", "norms.1"]
    assert parts["linear"]["flops"] == 2 * 2 * 8 * 16 * 16
    assert parts["linear"]["bytes"] == 2 * 4 * (8 * 16 + 16 * 16 + 8 * 16)
    assert sum(part["share"] for part in parts.values()) == pytest.approx(1)
    assert all(part["gain"] >= 1 and 0 < part["roof_share"] <= 1 for part in parts.values())
    assert found["flame"]["seconds"] == pytest.approx(found["graph_seconds"])


def test_a_training_step_has_three_phases_and_their_operators(profiled: Ran) -> None:
    found = profiled.json["training"]

    assert [phase["name"] for phase in found["phases"]] == ["forward", "backward", "optimiser"]
    assert sum(phase["share"] for phase in found["phases"]) == pytest.approx(1)
    calls = {(row["phase"], row["name"]): row["calls"] for row in found["operators"]}
    assert calls["forward", "linear"] == 2
    assert calls["backward", "mm"] == 4
    assert {phase for phase, _ in calls} == {"forward", "backward", "optimiser"}
    assert sum(row["share"] for row in found["operators"]) == pytest.approx(1)


def test_a_profile_is_cached_and_shown(place: CliWorkspace, profiled: Ran) -> None:
    ran = place.run("model", "profile", "net.py", "-o", "page.html")

    assert ran.code == 0
    assert not ran.executed
    rows = [line.split() for line in ran.out.splitlines()]
    assert [row[:2] for row in rows if row[:1] and row[0] in {"norm", "linear", "sub"}] == [
        [part["name"], str(part["calls"])] for part in profiled.json["parts"]
    ]
    page = (place.root / "page.html").read_text()
    assert "norms.0 Norm" in page
    assert "a training step: " in ran.out
    assert ["backward", "mm", "4"] in [row[:3] for row in rows]
    assert "A training step" in page
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")


@pytest.fixture(scope="module")
def compiled(place: CliWorkspace, profiled: Ran) -> Ran:
    return place.run("model", "profile", "net.py", "--compiled", "--json")


def test_a_profile_shows_what_torch_compile_makes_of_a_model(compiled: Ran) -> None:
    """By the pinned clang, in the sandbox: it never falls back to eager."""
    found = compiled.json["compiled"]

    assert found["absent"] == "", compiled.err
    assert 0 < found["speedup_low"] <= found["speedup"] <= found["speedup_high"]
    kernels = {kernel["name"]: kernel for kernel in found["kernels"]}
    assert kernels["aten::mm"]["calls"] == 2
    assert not kernels["aten::mm"]["fused"]
    fused = [name for name, kernel in kernels.items() if kernel["fused"]]
    assert any("mean_mul_pow_rsqrt" in name for name in fused)
    assert sum(kernel["share"] for kernel in kernels.values()) == pytest.approx(1)


def test_kernels_of_torch_compile_are_shown(place: CliWorkspace, compiled: Ran) -> None:
    ran = place.run("model", "profile", "net.py", "--compiled", "-o", "page.html")

    assert not ran.executed
    assert "torch.compile over eager: " in ran.out
    rows = [line.split() for line in ran.out.splitlines()]
    assert ["aten::mm", "PyTorch"] in [[row[0], row[-1]] for row in rows if row]
    page = (place.root / "page.html").read_text()
    assert "After torch.compile" in page
    assert "mean_mul_pow_rsqrt" in page


def test_facts_of_another_form_are_refused(place: CliWorkspace) -> None:
    """A hostile file may write the answer itself, and end the process."""
    forged = '{"schema": 1, "device": "cpu", "parts": [], "eager_seconds": -1}'
    place.write(
        "forged.py",
        f"import os, pathlib\npathlib.Path('out/facts.json').write_text('{forged}')\nos._exit(0)",
    )

    ran = place.run("model", "profile", "forged.py")

    assert ran.code == 1
    assert "forged.py: what was written about it cannot be read" in ran.err
    assert "Traceback" not in ran.err


def test_a_file_that_ends_the_process_is_told_so(place: CliWorkspace) -> None:
    place.write("ends.py", "import sys\nsys.exit(0)\n")

    ran = place.run("model", "profile", "ends.py")

    assert ran.code == 1
    assert "ends.py: the model's code ended the process, as sys.exit() does\n" in ran.err


def test_a_path_that_is_no_model_file_is_a_usage_error(place: CliWorkspace) -> None:
    missing = place.run("model", "profile", "none.py")
    assert (missing.code, "none.py" in missing.err) == (2, True)
    place.write("1.py", MODEL)
    assert "cannot name a model" in place.run("model", "profile", "1.py").err


@pytest.fixture(scope="module")
def extracted(place: CliWorkspace) -> Ran:
    wanted = ("--part=norm", "--part=sub", "--samples=2")
    return place.run("model", "extract", "net.py", *wanted, "-o", "tasks/net", "--json")


def test_a_part_becomes_a_task_with_the_models_own_shapes(
    place: CliWorkspace, extracted: Ran
) -> None:
    assert extracted.code == 0, extracted.err
    assert extracted.json["admitted"] == ["norm"]
    (task,) = tomllib.loads((place.root / "tasks/net/norm/BUILD.toml").read_text())["call"]
    assert task["call"] == "y = norm(x, weight)"
    assert task["inputs"] == {"x": "T[d0, d1]", "weight": "T[d1]"}
    assert task["configs"] == [{"d0": 8, "d1": 16}]
    assert task["flops"] == "6 * d0 * d1"
    known = json.loads((place.root / "tasks/net/model.json").read_text())
    parts = {name: (part["calls"], part["is_task"]) for name, part in known["parts"].items()}
    assert parts == {"norm": ([2], True), "sub": ([1], False)}


def test_a_part_that_is_not_admitted_is_removed(place: CliWorkspace, extracted: Ran) -> None:
    assert extracted.json["left_out"]["sub"].startswith("RANGE: ")
    assert not (place.root / "tasks/net/sub").exists()


def test_values_are_known_by_quantiles_alone(place: CliWorkspace, extracted: Ran) -> None:
    names: dict[str, Any] = {}
    exec((place.root / "tasks/net/norm/reference.py").read_text(), names)

    config = {"d0": 2000, "d1": 16, "dtype": torch.float32}
    drawn = names["inputs"](config, torch.Generator().manual_seed(3))

    assert len(names["RANGES"]["x"]["quantiles"]) == len(names["SHARES"]) == 11
    assert drawn["x"].std().item() == pytest.approx(names["RANGES"]["x"]["std"], rel=0.1)
    assert drawn["weight"].std() > 0.1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-o", "../elsewhere"), "is not a directory in the workspace"),
        (("-o", "."), "is not a directory in the workspace"),
        (("-o", "tasks"), "exists and was not written by 'kabuild model extract'"),
        (("-o", "t", "--part=nrom"), "did you mean 'norm'?"),
    ],
)
def test_a_wrong_place_or_part_is_a_usage_error(
    place: CliWorkspace, extracted: Ran, arguments: tuple[str, ...], said: str
) -> None:
    ran = place.run("model", "extract", "net.py", *arguments)

    assert ran.code == 2
    assert said in ran.err


@pytest.fixture(scope="module")
def verified(place: CliWorkspace, extracted: Ran, compiled: Ran) -> Ran:
    for name in ("norm", "whole", "step"):
        file = place.root / f"tasks/net/{name}/BUILD.toml"
        file.write_text(file.read_text() + QUICK)
    place.write("tasks/net/norm/solutions/expert/norm.py", FASTER)
    return place.run("model", "verify", "tasks/net", "--json")


def test_a_model_with_a_passing_kernel_passes(place: CliWorkspace, verified: Ran) -> None:
    assert verified.code == 0, verified.err + verified.out
    found = verified.json
    assert [(v["name"], v["passed"]) for v in found["variants"]] == [("all", True), ("none", True)]
    assert all(v["speedup"]["speedup"] > 0 for v in found["variants"])
    (part,) = found["parts"]
    assert part["name"] == "norm"
    assert part["contribution"]["speedup_low"] <= part["contribution"]["speedup"]
    assert found["predicted"] == pytest.approx(1 / (1 - part["share"] * (1 - 1 / part["speedup"])))
    compiled = found["compiled"]
    for variant in found["variants"]:
        ends = [variant["over_compiled"][f"speedup_{end}"] for end in ("low", "high")]
        low = variant["speedup"]["speedup_low"] / compiled["speedup_high"]
        high = variant["speedup"]["speedup_high"] / compiled["speedup_low"]
        assert ends == [pytest.approx(low), pytest.approx(high)]


def test_logits_are_compared_with_the_true_ones(verified: Ran) -> None:
    found = verified.json["likeness"]

    assert found["model"]["positions"] == found["eager"]["positions"] == 8 * 8
    assert 0 <= found["model"]["divergence"] < 1e-9
    assert (found["model"]["agreement"], found["wrong"]) == (1.0, "")


def test_training_steps_are_compared_with_the_true_ones(verified: Ran) -> None:
    found = verified.json["training"]

    assert found["steps"] == 20
    assert found["last"] < found["first"]
    assert 0 < found["gradient"] < 1e-5
    assert found["wrong"] == ""
    step = verified.json["step"]
    assert (step["name"], step["passed"], step["reason"]) == ("all", True, "")
    assert step["speedup"]["speedup_low"] <= step["speedup"]["speedup"]


@pytest.fixture(scope="module")
def builds(place: CliWorkspace, verified: Ran) -> Iterator[Builder]:
    """For parts of a verification: its interpreters have torch from the first build on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KABUILD_CACHE", str(place.store))
        with builder() as made:
            yield made


def test_a_kernel_without_a_gradient_is_told_by_training(
    place: CliWorkspace, builds: Builder
) -> None:
    """Its results are right, so no other comparison tells."""
    known = Known.load(place.root / "tasks/net")
    detached = FASTER.replace("rms_norm(x,", "rms_norm(x.detach(),")
    text = assemble(known, MODEL, {"norm": detached}).encode()
    reference = (place.root / "tasks/net/whole/reference.py").read_bytes()

    model = ModelFile(Path("detached.py"), "net", text)
    found = training_of(model, reference, Request((), cwd=place.root), builds)

    assert "'norms.0.weight' gets no gradient in step 1" in found.wrong
    assert f"too far off: {found.wrong}" in str(found)


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        ("os._exit(0)", "too far off: it wrote 0 bytes of logits, expected 8192"),
        ("os._exit(1)", "the model ended while giving logits: "),
        ("torch.is_grad_enabled() and os._exit(1)", "the model ended while training: "),
    ],
)
def test_a_kernel_that_ends_its_process_does_not_pass(
    place: CliWorkspace, builds: Builder, ending: str, said: str
) -> None:
    known = Known.load(place.root / "tasks/net")
    ends = FASTER.replace("    return", f"    import os\n    {ending}\n    return")
    text = assemble(known, MODEL, {"norm": ends}).encode()
    reference = (place.root / "tasks/net/whole/reference.py").read_bytes()

    model = ModelFile(Path("ending.py"), "net", text)
    unjudged = Verified((), {}, None, (), ())
    found = compared(unjudged, model, reference, Request((), cwd=place.root), builds)

    assert said in render(found)
    assert found.wrong
    assert found.to_json()["ended"] == found.ended


def test_a_slightly_wrong_kernel_is_told_by_the_logits(
    place: CliWorkspace, builds: Builder
) -> None:
    """Alone, whatever the comparison of elements says."""
    known = Known.load(place.root / "tasks/net")
    text = assemble(known, MODEL, {"norm": WRONG.replace("1.01", "1.1")}).encode()
    reference = (place.root / "tasks/net/whole/reference.py").read_bytes()

    model = ModelFile(Path("wrong.py"), "net", text)
    found = likeness_of(model, reference, Request((), cwd=place.root), builds)

    assert "nats, where 1e-06 are allowed" in found.wrong
    assert f"too far off: {found.wrong}" in str(found)


def test_a_model_is_verified_from_the_cache(place: CliWorkspace, verified: Ran) -> None:
    again = place.run("model", "verify", "tasks/net")

    assert again.code == 0
    assert not again.executed
    rows = [line.split() for line in again.out.splitlines()]
    assert ["all", "kernels", "PASS"] in [row[:3] for row in rows]
    assert "logits at 64 positions: divergence" in again.out
    assert "over torch.compile" in again.out
    assert "20 training steps, loss " in again.out
    assert "a training step: PASS, over eager: " in again.out
    assert all(len(line) <= 100 for line in again.out.splitlines())
    assert "torch.compile over eager: " in again.out


def test_a_kernel_that_fails_its_task_is_not_put_in(place: CliWorkspace, verified: Ran) -> None:
    place.write("tasks/net/norm/solutions/expert/norm.py", WRONG)

    ran = place.run("model", "verify", "tasks/net", "--json")

    assert ran.code == 3
    assert ran.json["unsolved"] == {"norm": "correctness: WRONG_RESULT"}
    assert ran.json["variants"] == []


@pytest.mark.parametrize(("task", "output"), [("whole", "'y0'"), ("step", "'d_norms_0_weight'")])
def test_a_whole_with_a_wrong_kernel_is_rejected(
    place: CliWorkspace, verified: Ran, task: str, output: str
) -> None:
    """The step's loss and results are right, and the gradients of some weights 1 % off."""
    known = Known.load(place.root / "tasks/net")
    off = MODEL.replace("self.weight\n", "Off.apply(self.weight)\n") + OFF
    wrong = {"whole": assemble(known, MODEL, {"norm": WRONG}), "step": off}
    place.write("wrong.py", wrong[task])

    label = f"//tasks/net/{task}"
    ran = place.run("test", label, "--solution=wrong.py", "--gates=correctness")

    assert ran.code == 3
    assert f"output {output} differs" in ran.out


@pytest.mark.parametrize("finished", [0, 1])
def test_an_interrupted_extraction_leaves_nothing_behind(
    place: CliWorkspace, builds: Builder, finished: int
) -> None:
    """Neither where the model runs nor where its tasks are validated, already written."""
    model, request = read_model(place.root / "net.py"), Request((), cwd=place.root)
    rows = chosen(profile_of(model, request, builds), 0, ["norm"])
    begun = count()

    @contextmanager
    def stopping() -> Iterator[Event]:
        stop = Event()
        if next(begun) >= finished:
            stop.set()
        yield stop

    stopped = replace(builds, stopping=stopping)
    where = place.root / "tasks/interrupted"
    with pytest.raises(Interrupted) as caught:
        extract(model, rows, where, request, stopped)

    assert caught.value.exit_code is ExitCode.INTERRUPTED
    assert next(begun) == finished + 1
    assert not where.exists()
