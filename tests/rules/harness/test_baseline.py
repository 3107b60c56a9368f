"""What a PyTorch baseline is timed as: chosen once, right, and handed on."""

# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="arg-type"

from __future__ import annotations

import base64
import copy
import importlib
import json
import pickle
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import device_doubles
import pytest
from judging_doubles import Doubles, judge, softmax, write_spec

from kabuild.model.action import Literal
from tests.testkit.own_tasks import action_of

from base.program import CandidateFault, MachineFault, Program  # isort: skip
from base.spec import SpecError, parse_spec  # isort: skip
from baseline import gate  # isort: skip
from perf.choice import EAGER, Choice, Looks  # isort: skip
from perf.chooser import Chooser  # isort: skip
from perf.gate_samples import SidePlan  # isort: skip
from pyrunner import inside  # isort: skip
from runners import launcher_process  # isort: skip
from terms.perf import PerfPolicy  # isort: skip
from terms.reasons import Reason  # isort: skip
from truth import compiled_cache  # isort: skip
from truth.judge import Judge  # isort: skip
from truth.oracle import TaskFault  # isort: skip

COMPILED, GRAPHS = "max-autotune-no-cudagraphs", "max-autotune"
CONFIGS = [device_doubles.config(f"f32 n={n}") for n in (1, 2)]
FIRST, SECOND = (config.name for config in CONFIGS)


# on the processor


def chosen(folder, baseline, **changes):
    value = write_spec(folder, gate="baseline", salt="", **changes)
    spec = parse_spec({**value, "candidate": value["baseline"]})
    return gate.run(spec, Doubles({"baseline": baseline}))


def test_a_baseline_on_the_processor_is_timed_as_it_is(tmp_path):
    verdict = chosen(tmp_path, softmax)

    assert (verdict.outcome, verdict.summary) == ("PASS", "eager for 2 of 2 configs")
    told = json.loads(verdict.files["baseline.json"])
    names = ["f16 rows=3 cols=257", "f32 rows=8 cols=64"]
    assert sorted(told["baselines"]) == names
    for found in told["baselines"].values():
        assert found["counted"] == EAGER
        assert found["eager"] > 0
    assert json.loads(verdict.files["compiled.json"]) == {}


def wrong(x, y, **_):
    softmax(x, y, **_)
    y[0, 3] += 0.5


def fails(**_):
    raise ValueError("no such thing")


def test_a_wrong_baseline_is_no_choice(tmp_path):
    with pytest.raises(
        MachineFault, match=r"gives wrong results here: .* at \[0, 3\].*, in f32 rows=8"
    ):
        chosen(tmp_path, wrong)


def test_a_baseline_that_fails_is_the_task_s_fault(tmp_path):
    with pytest.raises(TaskFault, match="the baseline fails when timed"):
        chosen(tmp_path, fails)


# on a device


class Meter:
    """Runners of modes, of which some fail and some are wrong."""

    def __init__(self, failing=(), incorrect=()):
        self.modes = {}
        self.opened = []
        self.prepared = []
        self._failing, self._incorrect = failing, incorrect

    @contextmanager
    def running(self, side, config):
        mode = self.modes[config.name]
        self.opened.append(mode)
        try:
            yield SimpleNamespace(batch=lambda _: SimpleNamespace(outputs=[mode]))
        except CandidateFault as fault:
            raise TaskFault(f"the baseline fails when timed: {fault}") from fault

    def draw(self, number, config, batch, size):
        return [SimpleNamespace(inputs={}, config=config)]

    def wrong_by_itself(self, call, outputs):
        return "far off" if outputs in self._incorrect else ""

    def prepare(self, side, runner, config, slots):
        self.prepared.append((self.modes[config.name], config.name))
        self.look(side, runner, config)

    def look(self, side, runner, config, seen=None):
        mode = self.modes[config.name]
        if (mode, config.name) in self._failing:
            raise CandidateFault(Reason.EXCEPTION, "cannot be compiled")
        times = {FIRST: {"": 100.0, COMPILED: 40.0}, SECOND: {"": 100.0, COMPILED: 150.0}}
        return SidePlan(times[config.name].get(mode, 10.0), 8, "gate")

    again = look


def choose(meter):
    return Chooser(meter, meter, meter, CONFIGS).choose()


def test_the_fastest_mode_of_each_config_counts():
    meter = Meter()
    choice = choose(meter)

    assert choice.modes == {FIRST: COMPILED, SECOND: ""}
    assert choice.evidence[FIRST] == {EAGER: 100, COMPILED: 40, GRAPHS: 10, "counted": COMPILED}
    assert choice.evidence[SECOND] == {EAGER: 100, COMPILED: 150, "counted": EAGER}
    assert meter.opened == ["", COMPILED, GRAPHS]


def test_a_mode_that_fails_or_is_wrong_does_not_count_and_says_why():
    failing = choose(Meter(failing=[(COMPILED, FIRST)]))
    assert failing.modes == {FIRST: "", SECOND: ""}
    assert "cannot be compiled" in failing.evidence[FIRST][COMPILED]
    assert failing.evidence[SECOND][COMPILED] == 150

    off = choose(Meter(incorrect=[COMPILED]))
    assert off.modes[FIRST] == ""
    assert off.evidence[FIRST][COMPILED] == "gives wrong results: far off"


def test_each_config_is_compiled_again_in_its_mode_by_a_fresh_process():
    meter = Meter()
    chooser = Chooser(meter, meter, meter, CONFIGS)
    choice = chooser.choose()
    meter.opened.clear()

    assert chooser.compile_again(choice)
    assert meter.opened == [COMPILED]
    assert meter.prepared == [(COMPILED, FIRST)]
    for other in (Meter(failing=[(COMPILED, FIRST)]), Meter(incorrect=[COMPILED])):
        assert not Chooser(other, other, other, CONFIGS).compile_again(choice)


class Cached(Chooser):
    """Chooses as said; ``right`` is whether compiling again gives right results."""

    def __init__(self, cache, mode, right):
        self.looks = {FIRST: Looks({"": [100.0], COMPILED: [50.0]})}
        self._choice = Choice({FIRST: mode}, {FIRST: {"counted": mode or EAGER}})
        self._cache, self._right = cache, right

    def choose(self):
        write(self._cache, {f"{FOLDER}/triton/lost": b"", f"{FOLDER}/inductor/k.best_config": b"4"})
        return self._choice

    def compile_again(self, choice):
        assert choice is self._choice
        assert read(self._cache) == {f"{FOLDER}/inductor/k.best_config": b"4"}
        write(self._cache, {f"{FOLDER}/triton/won": b"kernel"})
        return self._right


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
        demand_memory=lambda: None, chooser=lambda: cached, baseline_cache=str(tmp_path)
    )
    monkeypatch.setattr(gate, "DeviceGate", lambda *_: device)
    value = write_spec(tmp_path / "..", gate="baseline", platform="cuda")
    value["baseline"] |= {"abi": "torch"}

    verdict = gate.run(parse_spec({**value, "candidate": value["baseline"]}), Doubles({}))

    assert sorted(json.loads(verdict.files["compiled.json"])) == [
        f"{FOLDER}/{place}" for place in handed_on
    ]


def test_what_is_wrong_as_it_is_is_no_baseline():
    with pytest.raises(MachineFault, match="the baseline gives wrong results here: far off"):
        choose(Meter(incorrect=[""]))


def test_a_gain_has_the_bounds_that_a_replay_is_compared_by():
    looks = {FIRST: Looks({"": [100.0, 99.0, 101.0], COMPILED: [50.0, 49.0, 52.0]})}
    (case,) = gate._verdict(Choice.fastest(CONFIGS[:1], looks), looks, {}).cases

    assert case["times"]["counted"] == COMPILED
    assert case["low"] < 99 / 52 < case["speedup"] == 2.0 < 101 / 49 < case["high"]


def test_a_gate_that_knows_the_choice_looks_at_nothing(tmp_path, monkeypatch):
    file = tmp_path / "baseline.json"
    file.write_text(json.dumps(choose(Meter()).to_json()))
    meter = device_doubles.Meter(lambda *_: [1e5, 1e5])
    names = (FIRST, SECOND)
    device_doubles.timed(
        monkeypatch, meter, names, PerfPolicy(half_width=1.0), choice=str(file)
    )  # its pilot has no looks

    assert meter.modes == {FIRST: COMPILED, SECOND: ""}


# what is handed on


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b'{"schema": 2, "baselines": {}}',
        b'{"schema": 1, "baselines": {}}',
        b'{"schema": 1, "baselines": {"f32 n=1": {"eager": 1}}}',
        b'{"schema": 1, "baselines": {"f32 n=1": {"counted": "max-autotune"}}}',
        b'{"schema": 1, "baselines": {"f32 n=1": {"counted": "../x"}}}',
    ],
)
def test_a_file_that_is_no_choice_is_refused(tmp_path, content):
    (tmp_path / "baseline.json").write_bytes(content)

    with pytest.raises(SpecError, match=r"baseline\.json"):
        Choice.read(tmp_path / "baseline.json", CONFIGS[:1])


def test_perf_on_the_processor_shows_what_it_is_timed_against(tmp_path):
    counted = {name: {"counted": EAGER, EAGER: 5} for name in ("f32 rows=8 cols=64",)}
    counted["f16 rows=3 cols=257"] = {"counted": COMPILED}
    file = tmp_path / "baseline.json"
    file.write_text(json.dumps({"schema": 1, "baselines": counted}))
    spec = parse_spec(write_spec(tmp_path, choice=str(file)))

    with pytest.raises(SpecError, match="nothing is compiled"):
        Choice.of_host(spec)
    counted["f16 rows=3 cols=257"] = {"counted": EAGER, EAGER: 7}
    file.write_text(json.dumps({"schema": 1, "baselines": counted}))
    assert Choice.of_host(spec).evidence == counted
    assert judge(tmp_path)[1]["baselines"] == {}


FOLDER = "compiled"


def write(root, files):
    for place, content in files.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_bytes(content)


def read(root):
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


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


def test_of_what_was_compiled_only_the_choices_are_kept(tmp_path):
    choices = {
        f"{FOLDER}/inductor/ab/cab.best_config": b'{"XBLOCK": 4}',
        f"{FOLDER}/inductor/cache/5f3a": b'{"mm": {}}',
        f"{FOLDER}/inductor/ab/cab.kernel_perf": b"0.25",
    }
    eager = {"eager/triton/K/k": b"kernel"}
    compiled = (
        f"{FOLDER}/inductor/ab/cab.py",
        f"{FOLDER}/inductor/fxgraph/x/cache/entry",
        f"{FOLDER}/triton/K/kernel.cubin",
    )
    write(tmp_path, {**choices, **eager, **dict.fromkeys(compiled, b"")})
    (tmp_path / FOLDER / "inductor/link").symlink_to("/nowhere")

    compiled_cache.keep_choices(str(tmp_path))

    assert read(tmp_path) == choices | eager
    assert not (tmp_path / FOLDER / "inductor/link").is_symlink()
    assert compiled_cache.collected(str(tmp_path)).keys() == choices.keys()


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
    assert sides.candidate.cache == sides.candidate.in_mode(COMPILED).cache == ""

    file.write_text("[]")
    with pytest.raises(SpecError, match="what was compiled of the baseline"):
        Judge.assemble(parse_spec(value), None, PerfPolicy())


def test_copies_of_what_inductor_has_tuned_say_so(monkeypatch):
    """It is asked of an unpickled copy whether a kernel is to be tuned again."""
    config = importlib.import_module("triton.runtime.autotuner").Config
    monkeypatch.setattr(config, "__setstate__", config.__setstate__)  # restored after this test
    inside.keep_tuned()
    kept = config.__setstate__
    inside.keep_tuned()
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


# as actions


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_no_candidate_has_a_part_in_the_choice(platform):
    """Nothing of it is an input, and whoever hands in has the same action."""
    action = action_of("torch2hip", platform, "baseline")

    assert action == action_of("torch2hip", platform, "baseline", "expert")
    assert not [path for path, _ in action.inputs if path.startswith("candidate")]
    perf = dict(action_of("torch2hip", platform, "perf").inputs)
    for name in ("baseline.json", "compiled.json"):
        assert perf[f"choice/{name}"] == action.output(name)
    assert isinstance(perf["spec.json"], Literal)
    assert json.loads(perf["spec.json"].data)["choice"] == "choice/baseline.json"


@pytest.mark.parametrize("part", ["correctness", "unseen", "retention", "agent"])
def test_only_perf_waits_for_the_choice(part):
    agent = "random" if part == "agent" else "none"
    inputs = dict(action_of("torch2hip", "cpu", part, agent).inputs)

    assert not [path for path in inputs if "baseline.json" in path]
