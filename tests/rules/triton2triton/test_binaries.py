"""Compiled kernels on their way from the compile gate to the runners of their own program."""

from __future__ import annotations

import base64
import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import pytest

from kabuild.model.action import Output
from tests.testkit.own_tasks import action_of

from base.places import BINARIES  # isort: skip
from base.program import Program, RunnerPolicy  # isort: skip
from base import device_platform  # isort: skip
from pyrunner_device import binaries, triton_driver  # isort: skip
from pyrunner_device.binaries import lay_out  # isort: skip
from namespaces import Bind  # type: ignore[import-not-found]  # isort: skip
from runners import confinement  # isort: skip

EMPTY = base64.b64encode(b"{}").decode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        b'{"a/b": 1}',
        b'{"a/b": "no base64"}',
        b'{"a/__grp__b": "%s"}' % EMPTY.encode(),
        b'{"a/__grp__b": "%s"}' % base64.b64encode(b"[" * 100_000),
        b'{"a/__grp__b": "%s"}' % base64.b64encode(b'{"child_paths": [1]}'),
        b'{"../b": "%s"}' % EMPTY.encode(),
        b'{"a/../../b": "%s"}' % EMPTY.encode(),
        b'{"/tmp/b": "%s"}' % EMPTY.encode(),
        b'{"b": "%s"}' % EMPTY.encode(),
        b'{"a/%s": "%s"}' % (b"b" * 300, EMPTY.encode()),
    ],
)
def test_files_that_are_no_kernels_are_not_laid_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "below/triton"))
    (tmp_path / "kernels.json").write_bytes(b'{"files": ' + content + b"}")

    lay_out(str(tmp_path / "kernels.json"))

    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["kernels.json"]


def test_kernels_do_not_replace_those_of_other_runners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = base64.b64encode(b'{"child_paths": {"k.json": "/elsewhere/k.json"}}').decode()
    (tmp_path / "kernels.json").write_text(
        json.dumps({"files": {"A/__grp__k.json": group, "A/k.json": EMPTY}})
    )
    (tmp_path / "triton/A").mkdir(parents=True)
    (tmp_path / "triton/A/k.json").write_text("[]")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))

    lay_out(str(tmp_path / "kernels.json"))

    assert (tmp_path / "triton/A/k.json").read_text() == "[]"
    listed = json.loads((tmp_path / "triton/A/__grp__k.json").read_text())
    assert listed == {"child_paths": {"k.json": str(tmp_path / "triton/A/k.json")}}


@pytest.mark.parametrize(("family", "task"), [("triton2triton", "rmsnorm"), ("call", "mine")])
def test_each_side_gets_its_own_kernels_alone(family: str, task: str) -> None:
    for gate in ("correctness", "perf", "unseen"):
        files = dict(action_of(family, "cuda", gate).inputs)
        made = {path: file for path, file in files.items() if path.endswith("/kernels.json")}
        producers = {
            path: file.producer.partition(":")[2]
            for path, file in made.items()
            if isinstance(file, Output)
        }
        assert producers == {
            "baseline/kernels.json": f"{task}.baseline.compile",
            "candidate/kernels.json": f"{task}.compile",
        }
    interpreted = dict(action_of(family, "cpu", "perf").inputs)
    assert not [path for path in interpreted if path.endswith("/kernels.json")]


def test_a_runner_sees_the_kernels_of_its_program_alone() -> None:
    program = Program("python", "candidate/kernel.py", "copy", platform="cuda")
    seen = confinement.view(replace(program, binaries="candidate/kernels.json"), RunnerPolicy())
    unseen = confinement.view(program, RunnerPolicy())

    kernels = [bind for bind in seen.binds if bind.target == BINARIES]
    assert kernels == [
        Bind(str(Path("candidate/kernels.json").absolute()), "/binaries/kernels.json")
    ]
    assert BINARIES not in {bind.target for bind in unseen.binds}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (["*,i32,fp32,constexpr", "*"], [["*", "i32", "fp32", "constexpr"], ["*"]]),
        (["*,tensordesc<fp16[64,64]>", "*;", "", "i32,", "i32\n"], []),
        (["*"] * 40, [["*"]] * 16),
        ([1], []),
        (None, []),
    ],
)
def test_only_plain_types_of_parameters_are_read(
    tmp_path: Path, written: object, read: list[list[str]]
) -> None:
    (tmp_path / "kernels.json").write_text(json.dumps({"files": {}, "launchers": written}))

    assert binaries.launchers(str(tmp_path / "kernels.json")) == read


def test_what_launches_a_kernel_is_compiled_before_runners_are_forked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from triton.backends.nvidia import driver

    asked: list[str] = []
    monkeypatch.setattr(driver, "compile_module_from_src", lambda src, **_: asked.append(src))
    monkeypatch.setattr(driver, "library_dirs", list)
    monkeypatch.setattr(driver.CudaUtils, "instance", None, raising=False)
    kernels = tmp_path / "kernels.json"
    kernels.write_text('{"files": {}, "launchers": ["*,i32,fp32,constexpr", "*,i64"]}')
    platform = _platform("cuda")
    monkeypatch.setattr(triton_driver, "device_platform", lambda _: platform)

    triton_driver.build("cuda", str(kernels))
    before = len(asked)
    kinds = {0: "*bf16", 1: "i32", 2: "fp32", 3: "constexpr"}  # as Triton has them
    source = driver.make_launcher({(3,): 64}, kinds, None)
    driver.compile_module_from_src(src=source, name="__triton_launcher")

    assert before == 2
    assert len(asked) == 2  # a runner compiles nothing more
    driver.compile_module_from_src(src="another", name="__triton_launcher")
    assert asked[2:] == ["another"]


def _platform(name: str) -> device_platform.DevicePlatform:
    path = Path(__file__).parents[3] / f"toolchains/platforms/{name}/tools/{name}_device.py"
    spec = importlib.util.spec_from_file_location(f"{name}_device", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: device_platform.DevicePlatform = module.PLATFORM
    return found
