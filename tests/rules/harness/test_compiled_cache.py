"""What was compiled of a PyTorch baseline: what is handed on of it, to whom, and what it takes."""

# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="arg-type"

from __future__ import annotations

import base64
import copy
import fcntl
import importlib
import json
import pickle
import sys
from pathlib import Path
from types import SimpleNamespace

import device_doubles
import pytest
import torch
from judging_doubles import Doubles, write_spec

from base.program import Program  # isort: skip
from base.spec import SpecError, parse_spec  # isort: skip
from baseline import gate  # isort: skip
from perf.choice import EAGER, Choice, Looks  # isort: skip
from perf.chooser import TUNINGS, Chooser  # isort: skip
from pyrunner import compiled  # isort: skip
from runners import launcher_process  # isort: skip
from terms.perf import PerfPolicy  # isort: skip
from truth import compiled_cache  # isort: skip
from truth.judge import Judge  # isort: skip

COMPILED, GRAPHS = "max-autotune-no-cudagraphs", "max-autotune"
FIRST = device_doubles.config("f32 n=1").name
FOLDER = "compiled"


def write(root, files):
    for place, content in files.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_bytes(content)


def read(root):
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


class Cached(Chooser):
    """Chooses as said; ``right`` is whether compiling again gives right results."""

    def __init__(self, cache, mode, right):
        self.looks = {FIRST: Looks({"": [100.0], COMPILED: [50.0]})}
        self._choice = Choice({FIRST: mode}, {FIRST: {"counted": mode or EAGER}})
        self._cache, self._right = cache, right

    def choose(self):
        self.recorded = 0
        tuning = compiled_cache.tuning_folder(str(self._cache), "0-0")
        write(Path(tuning), {"triton/lost": b"", "inductor/k.best_config": b"4"})
        compiled_cache.take_choices(str(self._cache), [tuning])
        return self._choice

    @property
    def choice(self):
        return self._choice

    def compile_again(self, choice):
        assert choice is self._choice
        write(self._cache, {f"{FOLDER}/triton/won": b"kernel"})
        return self._right

    def record(self):
        """What is compiled for the modes that are only shown is not handed on."""
        self.recorded += 1
        write(self._cache, {f"{FOLDER}/triton/shown": b"kernel"})


@pytest.mark.parametrize(
    ("mode", "right", "handed_on"),
    [
        (COMPILED, True, ["inductor/k.best_config", "triton/won"]),
        (COMPILED, False, []),
        ("", True, []),
    ],
)
def test_what_is_handed_on_was_compiled_again(tmp_path, monkeypatch, mode, right, handed_on):
    cached = Cached(tmp_path, mode, right)
    device = SimpleNamespace(
        demand_memory=lambda: None,
        chooser=lambda tunings: cached if tunings == TUNINGS else None,
        baseline_cache=str(tmp_path),
        seconds={"first_calls": 2.5},
    )
    monkeypatch.setattr(gate, "DeviceGate", lambda *_: device)
    value = write_spec(tmp_path / "..", gate="baseline", platform="cuda")
    value["baseline"] |= {"abi": "torch"}

    verdict = gate.run(parse_spec({**value, "candidate": value["baseline"]}), Doubles({}))

    assert sorted(json.loads(verdict.files["compiled.json"])) == [
        f"{FOLDER}/{place}" for place in handed_on
    ]
    assert cached.recorded == 1
    assert json.loads(verdict.files["baseline.json"])["seconds"] == {"first_calls": 2.5}


def test_what_was_compiled_is_laid_out_where_it_was(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    files = {
        f"{FOLDER}/inductor/ab/cab.py": b"kernel",
        f"{FOLDER}/inductor/fxgraph/x/y/entry": b"\x80graph",
        f"{FOLDER}/triton/K/kernel.cubin": b"\x7fELF",
    }
    left_out = (f"{FOLDER}/inductor/x.lock", "eager/triton/K/k", f"{FOLDER}/other/file")
    write(one, {**files, **dict.fromkeys(left_out, b"")})
    (one / FOLDER / "inductor/link").symlink_to("/etc/passwd")
    (tmp_path / "compiled.json").write_text(json.dumps(compiled_cache.collected(str(one))))
    compiled_cache.lay_out(tmp_path / "compiled.json", str(other))

    assert read(other) == files
    for mode in (COMPILED, GRAPHS):
        assert compiled_cache.folder_of(str(other), mode) == str(other / FOLDER)
    assert compiled_cache.folder_of("", COMPILED) == ""


def test_of_what_was_tuned_only_the_choices_of_the_fastest_are_taken(tmp_path):
    choices = {
        "inductor/ab/cab.best_config": b'{"XBLOCK": 4}',
        "inductor/cache/5f3a": b'{"mm": {}}',
        "inductor/ab/cab.kernel_perf": b"0.25",
    }
    compiled = (
        "inductor/ab/cab.py",
        "inductor/fxgraph/x/cache/entry",
        "triton/K/kernel.cubin",
    )
    fastest, other = (compiled_cache.tuning_folder(str(tmp_path), name) for name in "ab")
    write(Path(fastest), {**choices, **dict.fromkeys(compiled, b"")})
    write(Path(other), {"inductor/ab/cab.best_config": b'{"XBLOCK": 8}'})
    (Path(fastest) / "inductor/link.best_config").symlink_to("/etc/passwd")

    compiled_cache.take_choices(str(tmp_path), [fastest])

    there = tmp_path / FOLDER
    assert read(there) == choices
    assert compiled_cache.collected(str(tmp_path)).keys() == {f"{FOLDER}/{p}" for p in choices}
    compiled_cache.take_choices(str(tmp_path), [])
    assert read(there) == choices


def test_tunings_know_nothing_of_each_other_but_whose_turn_it_is(tmp_path):
    first, second = (Path(compiled_cache.tuning_folder(str(tmp_path), name)) for name in "ab")
    assert first != second
    locks = [folder / "inductor" / compiled_cache.TURN for folder in (first, second)]
    with locks[0].open("ab") as one, locks[1].open("ab") as other:
        fcntl.flock(one, fcntl.LOCK_EX)
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert compiled_cache.TURN == compiled._TURN
    write(first, {"triton/K/variant.cubin": b"kernel", "inductor/ab/k.best_config": b"1"})
    third = Path(compiled_cache.tuning_folder(str(tmp_path), "c", str(first)))
    assert read(third) == {"triton/K/variant.cubin": b"kernel", "inductor/turn.lock": b""}
    fourth = Path(compiled_cache.tuning_folder(str(tmp_path), "d", str(second)))
    assert read(fourth) == {"inductor/turn.lock": b""}
    assert compiled_cache.tuning_folder(str(tmp_path), "a") == str(first)
    assert compiled_cache.tuning_folder("", "a") == ""


def test_the_tables_of_several_tunings_become_one(tmp_path):
    """All configs of a tuning's folder have one table, named by the machine."""
    tunings = [compiled_cache.tuning_folder(str(tmp_path), name) for name in "abc"]
    tables = (
        b'{"cache": {"mm": {"64x8": {"high": {"cublas": 1.5}}}}}',
        b'{"cache": {"mm": {"64x8": {"high": {"cublas": 9.5}}, "8x8": {"high": {"t": 2}}}}}',
        b"no table",
    )
    for tuning, table, best in zip(tunings, tables, (b"1", b"2", b"3"), strict=True):
        write(Path(tuning), {"inductor/cache/5f3a": table, "inductor/ab/k.best_config": best})

    compiled_cache.take_choices(str(tmp_path), tunings)

    there = tmp_path / FOLDER / "inductor"
    assert json.loads((there / "cache/5f3a").read_bytes()) == {
        "cache": {"mm": {"64x8": {"high": {"cublas": 1.5}}, "8x8": {"high": {"t": 2}}}}
    }
    assert (there / "ab/k.best_config").read_bytes() == b"1"
    compiled_cache.forget_tunings(str(tmp_path))
    compiled_cache.forget_tunings("")
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [FOLDER]


def test_too_much_is_not_handed_on(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled_cache, "MOST_BYTES", 5)
    write(tmp_path, {f"{FOLDER}/triton/k": b"123456"})

    assert compiled_cache.collected(str(tmp_path)) == {}


@pytest.mark.parametrize(
    "place",
    ["../inductor/a", "m/inductor/../../a", "/m/inductor/a", "m/other/a", "m/inductor", "m//a", ""],
)
def test_nothing_is_laid_out_elsewhere(tmp_path, place):
    (tmp_path / "below").mkdir()
    (tmp_path / "compiled.json").write_text(json.dumps({place: base64.b64encode(b"x").decode()}))

    with pytest.raises(ValueError, match="not in a compiler's cache"):
        compiled_cache.lay_out(tmp_path / "compiled.json", str(tmp_path / "below"))
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["compiled.json"]


def test_only_the_baseline_s_runners_see_what_was_compiled(tmp_path):
    place, file = f"{FOLDER}/inductor/ab/cab.py", tmp_path / "compiled.json"
    file.write_text(json.dumps({place: base64.b64encode(b"kernel").decode()}))
    value = write_spec(tmp_path, gate="perf", platform="cuda", compiled=str(file))
    value["baseline"] |= {"abi": "torch"}
    sides = Judge.assemble(parse_spec(value), None, PerfPolicy())

    cache = sides.baseline.in_mode(COMPILED).cache
    assert cache == f"{sides.baseline.cache}/{FOLDER}"
    assert Path(cache, "inductor/ab/cab.py").read_bytes() == b"kernel"
    assert not list(Path(sides.baseline.in_mode("").cache).iterdir())
    tuning = sides.baseline.tuning(COMPILED, "1-0")
    assert (tuning.program.mode, Path(tuning.cache).name) == (COMPILED, "tuning-1-0")
    assert [path.name for path in Path(tuning.cache).rglob("*") if path.is_file()] == ["turn.lock"]
    assert sides.candidate.cache == sides.candidate.in_mode(COMPILED).cache == ""

    file.write_text("[]")
    with pytest.raises(SpecError, match="what was compiled of the baseline"):
        Judge.assemble(parse_spec(value), None, PerfPolicy())


def test_copies_of_what_inductor_has_tuned_say_so(monkeypatch):
    """It is asked of an unpickled copy whether a kernel is to be tuned again."""
    config = importlib.import_module("triton.runtime.autotuner").Config
    monkeypatch.setattr(config, "__setstate__", config.__setstate__)  # restored after this test
    compiled.keep_tuned()
    kept = config.__setstate__
    compiled.keep_tuned()
    assert config.__setstate__ is kept
    tuned, plain = config({"XBLOCK": 4}, num_warps=2), config({"XBLOCK": 8})
    tuned.found_by_coordesc = True

    for one in (copy.deepcopy(tuned), pickle.loads(pickle.dumps(tuned))):
        assert one.found_by_coordesc is True
        assert (one.kwargs, one.num_warps) == ({"XBLOCK": 4}, 2)
    assert not hasattr(copy.deepcopy(plain), "found_by_coordesc")


@pytest.mark.parametrize("mode", ["", COMPILED])
def test_compilers_hash_their_files_before_runners_are_forked(monkeypatch, mode):
    for module, name in launcher_process._KEYS:
        assert callable(getattr(importlib.import_module(module), name))
    hashed = []
    known = SimpleNamespace(key=lambda: hashed.append("hashed"))
    monkeypatch.setitem(sys.modules, "a_compiler", known)
    monkeypatch.setattr(launcher_process, "_KEYS", (("a_compiler", "key"), ("none", "key")))
    monkeypatch.setattr(launcher_process, "_COMPILING", ())

    launcher_process._preload(Program("torch", "reference.py", "f", mode=mode, platform="cuda"))

    assert hashed == ["hashed"] * bool(mode)


@pytest.mark.parametrize("mode", ["", COMPILED])
def test_a_compiled_baseline_keeps_what_was_tuned_and_measures_variants_alone(monkeypatch, mode):
    done = []
    for step in ("keep_tuned", "measure_alone"):
        monkeypatch.setattr(compiled, step, lambda step=step: done.append(step))
    monkeypatch.setattr(torch, "compile", lambda entry, **_: entry)

    assert compiled.compiled(Program("torch", "reference.py", "f", mode=mode), abs) is abs
    assert done == ["keep_tuned", "measure_alone"] * bool(mode)


def test_no_two_processes_measure_variants_at_once(monkeypatch, tmp_path):
    """As two processes do, each holds the file that the lock is on by a descriptor of its own."""
    benchmarker = importlib.import_module("torch._inductor.runtime.benchmarking").benchmarker
    cache = tmp_path / "inductor"
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(cache))
    held = []

    def measure(work, *, rep):
        with (cache / "turn.lock").open("ab") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held.append(rep)
        return work()

    monkeypatch.setattr(benchmarker, "benchmark_gpu", measure, raising=False)
    compiled.measure_alone()

    assert benchmarker.benchmark_gpu(lambda: 2.5, rep=3) == 2.5
    with pytest.raises(ZeroDivisionError):
        benchmarker.benchmark_gpu(lambda: 1 / 0, rep=4)

    def nested():
        benchmarker.benchmark_gpu(int, rep=6)
        return measure(int, rep=7)  # the inner one has not unlocked for the outer one

    assert benchmarker.benchmark_gpu(nested, rep=5) == 0
    assert held == [3, 4, 5, 6, 7]
    with (cache / "turn.lock").open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
