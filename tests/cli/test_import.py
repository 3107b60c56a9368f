"""``kabuild import`` on a checkout of our own writing, in the forms of KernelBench's tasks."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from tests.testkit.cli import CliWorkspace
from tests.testkit.visitors import visited

HEAD = "import torch\nimport torch.nn as nn\n"
SCALED = (
    HEAD
    + """
class Model(nn.Module):
    def forward(self, a, s):
        return a * s

ROWS = 1024 * 2
COLS = 512

def get_inputs():
    return [torch.rand(ROWS, COLS), 2.5]

def get_init_inputs():
    return []
"""
)
NORM = (
    HEAD
    + '''
class Model(nn.Module):
    """Normalises."""
    def __init__(self, features, shape):
        super().__init__()
        self.norm = nn.BatchNorm1d(features)
        self.bias = nn.Parameter(torch.randn(shape))
    def forward(self, x):
        return self.norm(x) + self.bias

batch = 64
features = 48

def get_inputs():
    return [torch.rand(batch, features)]

def get_init_inputs():
    return [features, (features,)]
'''
)
LOSS = (
    HEAD
    + """
class Model(nn.Module):
    def forward(self, scores, classes):
        return nn.functional.cross_entropy(scores, classes)

batch = 256
kinds = 10

def get_inputs():
    return [torch.rand(batch, kinds), torch.randint(0, kinds, (batch,))]

def get_init_inputs():
    return []
"""
)
DROPOUT = NORM.replace("self.norm(x) + self.bias", "nn.functional.dropout(x, 0.5)")
FOREIGN = NORM.replace("import torch.nn as nn", "import torch.nn as nn\nimport no_such_package")
DATA = LOSS.replace("nn.functional.cross_entropy(scores, classes)", "scores[: classes[0].item()]")
HIDDEN = NORM.replace(
    "self.bias = nn.Parameter(torch.randn(shape))", "self.bias = torch.randn(shape)"
)
DEEP = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.first = nn.Linear(features, 96)
        self.layers = nn.Sequential(
            *(m for _ in range(24) for m in (nn.BatchNorm1d(96), nn.Tanh(), nn.Linear(96, 96)))
        )
    def forward(self, x):
        return self.layers(self.first(x))

batch = 256
features = 48

def get_inputs():
    return [torch.rand(batch, features)]

def get_init_inputs():
    return [features]
"""
)
GLOBAL = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.mix = nn.Linear(features, features)
        self.last = torch.zeros(batch, features)
    def forward(self, x, start):
        self.last.copy_(start)
        self.last = torch.tanh(self.mix(x) + self.last)
        return (2 * self.last).view(batch // 4, 4, -1).permute(2, 0, 1)

whole = 96
batch = whole // 3
features = 48

def get_inputs():
    return [torch.rand(batch, features), torch.rand(batch, features)]

def get_init_inputs():
    return [features]
"""
)
CONVOLVED = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv1d(channels, 8, 3)
    def forward(self, x):
        return self.conv(x)

batch = 6
channels = 4
length = 40

def get_inputs():
    return [torch.rand(batch, channels, length)]

def get_init_inputs():
    return [channels]
"""
)
CHANCE = NORM.replace("self.norm(x) + self.bias", "(1e9 * (self.norm(x) + self.bias)).sin()")

TASKS = {
    "level1/1_Scaled": SCALED,
    "level1/2_Norm": NORM,
    "level1/3_Loss": LOSS,
    "level2/1_Dropout": DROPOUT,
    "level2/2_Foreign": FOREIGN,
    "level2/3_Data": DATA,
    "level2/4_Hidden": HIDDEN,
    "level2/5_Convolved": CONVOLVED,
    "level3/1_Deep": DEEP,
    "level3/2_Chance": CHANCE,
    "level3/3_Global": GLOBAL,
}
IMPORTED = [*list(TASKS)[:3], "level2/5_Convolved", "level3/1_Deep", "level3/3_Global"]


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> CliWorkspace:
    """A workspace beside a checkout, whose tasks were imported."""
    base = tmp_path_factory.mktemp("import")
    workspace = CliWorkspace.make(base)
    for name, text in TASKS.items():
        workspace.write(f"../bench/KernelBench/{name}.py", text)
    ran = workspace.run("import", "kernelbench", "../bench", "--name=kb")
    assert ran.code == 0, ran.err
    assert "@kb: 6 of 11 tasks imported\n  licence: MIT; bundles may include" in ran.out
    return workspace


def test_every_task_is_imported_or_left_out_for_a_reason(imported: CliWorkspace) -> None:
    listed = dict(
        line.split("  ", 1) for line in imported.run("import", "--list", "@kb").out.splitlines()
    )

    assert listed["@kb//level1/1_Scaled"] == "imported"
    assert listed["@kb//level2/1_Dropout"].startswith("RANDOM_RESULTS  its results are random")
    assert listed["@kb//level2/2_Foreign"].startswith("NEEDS_PACKAGE  it imports 'no_such_package'")
    assert listed["@kb//level2/3_Data"].startswith("NO_SHAPES  its shapes depend on data")
    assert listed["@kb//level2/4_Hidden"].startswith("HIDDEN_TENSOR  its tensor 'bias' is in no")
    assert listed["@kb//level3/2_Chance"].startswith("ILL_CONDITIONED  rounding alone moves its")
    assert len(listed) == len(TASKS)

    query = imported.run("query", "@kb//...")
    assert query.out.split() == [f"@kb//{name}:{name[7:]}" for name in IMPORTED]
    assert "not imported: 5 tasks of @kb//" in query.err


def test_the_lock_says_what_crosses_the_boundary(imported: CliWorkspace) -> None:
    lock = (imported.root / "imports/kb.lock.toml").read_text()

    for line in (
        'call = "y = ModelNew()(x0, x1)"',
        'inputs = { x0 = "T[2 * rows, cols]" }',
        "scalars = { x1 = 2.5 }",
        'call = "y = ModelNew(features, (features,))(x0)"',
        'inputs = { x0 = "T[batch, features]" }',
        '"norm.running_var" = "T[features]", "norm.num_batches_tracked" = "i64[]"',
        'dims = { batch = "2..64", features = "1..48" }',
        "configs = [{ batch = 64, features = 48 }]",
        'inputs = { x0 = "T[batch, kinds]", x1 = "i64[batch]" }',
        'outputs = { y = "T[]" }',
        'inputs = { x0 = "T[32, features]", x1 = "T[32, features]" }',
    ):
        assert line in lock
    assert "Normalises" not in lock
    tf32 = [
        task["name"] for task in tomllib.loads(lock)["task"] if task.get("attrs", {}).get("tf32")
    ]
    assert tf32 == ["level2/5_Convolved"]  # linear layers are exact by default
    assert 'name = "kb"\nadapter = "kernelbench"\npath    = "../bench"' in (
        imported.root / "WORKSPACE.toml"
    ).read_text().replace("name    =", "name =").replace("adapter =", "adapter =")


def test_results_may_lie_anywhere_and_solutions_read_the_globals_of_the_original(
    imported: CliWorkspace,
) -> None:
    flags = ("--agent=none", "--gates=compile,correctness", "--json")
    ran = imported.run("test", "@kb//level3/3_Global", *flags)
    assert (ran.code, ran.gate("correctness")["verdict"]) == (0, "PASS"), ran.out

    gaps = GLOBAL.replace("class Model(", "class ModelNew(").replace(
        ".permute(2, 0, 1)", ".permute(2, 0, 1).repeat_interleave(2, 0)[::2]"
    )
    imported.write("model_new.py", gaps)
    ran = imported.run("test", "@kb//level3/3_Global", "--solution=model_new.py", *flags[1:])
    assert (ran.code, ran.gate("correctness")["verdict"]) == (0, "PASS"), ran.out


def test_an_imported_task_is_judged_as_any_other(imported: CliWorkspace) -> None:
    right = NORM.replace("class Model(", "class ModelNew(")
    wrong = right.replace("self.norm(x) + self.bias", "self.norm(x)")

    for text, code, verdict in ((right, 0, "PASS"), (wrong, 3, "FAIL")):
        imported.write("model_new.py", text)
        flags = ("--solution=model_new.py", "--gates=compile,correctness", "--json")
        ran = imported.run("test", "@kb//level1/2_Norm", *flags)
        assert (ran.code, ran.gate("correctness")["verdict"]) == (code, verdict), ran.err


def test_an_imported_task_is_not_analyzed_even_with_a_kernel_in_triton(
    imported: CliWorkspace,
) -> None:
    imported.write("model_new.py", f"import triton\n{NORM}")
    ran = imported.run("analyze", "@kb//level1/2_Norm", "--solution=model_new.py")

    assert (ran.code, ran.out) == (4, "")
    assert "  imported tasks cannot be analyzed, whatever their solution is written" in ran.err


def test_norms_of_a_deep_network_are_not_left_with_two_values(imported: CliWorkspace) -> None:
    """Of two values, what 24 norms make in single precision is chance, and nobody is right."""
    task = tomllib.loads((imported.root / "imports/kb.lock.toml").read_text())["task"][-3]
    (small,) = task["attrs"]["platform_configs"]["cpu"]
    assert task["name"] == "level3/1_Deep"
    assert small["batch"] >= 8
    assert int(task["attrs"]["dims"]["batch"].partition("..")[0]) == small["batch"]

    nearly = DEEP.replace("self.first(x))", "self.first(x) * 1.001)")
    nearly = nearly.replace("nn.BatchNorm1d(96)", "nn.BatchNorm1d(96, eps=2e-5)")
    for text, code, reason in ((DEEP, 0, ""), (nearly, 3, "WRONG_RESULT")):
        imported.write("model_new.py", text)
        flags = ("--solution=model_new.py", "--gates=compile,correctness", "--json")
        ran = imported.run("test", "@kb//level3/1_Deep", *flags)
        assert (ran.code, ran.gate("correctness")["reason"]) == (code, reason), ran.err


def test_a_lock_is_checked_and_a_changed_file_is_named(
    imported: CliWorkspace, tmp_path: Path
) -> None:
    copy = imported.copy(tmp_path)
    for name, text in TASKS.items():
        copy.write(f"../bench/KernelBench/{name}.py", text)
    assert copy.run("import", "--check", "@kb//...").out == "imports/kb.lock.toml: up to date\n"

    copy.write("../bench/KernelBench/level1/1_Scaled.py", SCALED.replace("512", "256"))
    tested = copy.run("test", "@kb//...", "--agent=none")
    assert tested.code == 1
    assert "../bench/KernelBench/level1/1_Scaled.py changed since it was imported" in tested.err
    checked = copy.run("import", "--check", "@kb")
    assert (checked.code, checked.out.partition("\n")[0]) == (3, "imports/kb.lock.toml: stale")
    assert {label.partition(":")[0] for label in checked.executed} <= {"@kb//level1/1_Scaled"}


def test_a_bundle_names_the_licence_and_holds_only_what_may_be_passed_on(
    imported: CliWorkspace, tmp_path: Path
) -> None:
    what = ("publish", "@kb//level1/1_Scaled", "--agent=none", "--gates=compile")

    done = imported.run(*what, "-o", "one.kab")
    lock = imported.root / "imports/kb.lock.toml"
    text = lock.read_text()
    lock.write_text(text.replace("redistribute = true", "redistribute = false"))
    refused = imported.run(*what, "-o", "two.kab")
    lock.write_text(text)

    assert done.code == 0, done.err
    assert imported.run("verify", "one.kab").code == 0
    replayed = imported.run("replay", "one.kab", "--json")
    assert replayed.json["request"]["licences"] == {"@kb": "MIT"}
    assert refused.code == 1
    assert "of '@kb', whose licence (MIT) does not allow" in refused.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("kernelbnch", "../bench"), "no adapter 'kernelbnch'\n  did you mean 'kernelbench'?"),
        (("kernelbench", "."), "is not a checkout of kernelbench: it has no KernelBench/level1"),
        (("kernelbench", "nowhere"), "no directory 'nowhere'"),
        (("kernelbench",), "expected an adapter and a path, or @NAME"),
        (("kernelbench", "../bench", "--name=K"), "'K' is not a valid repository name"),
        (("--list", "@kc"), "no repository '@kc'"),
        (("--check", "//..."), "'//...' is not an external repository"),
    ],
)
def test_mistakes(imported: CliWorkspace, arguments: tuple[str, ...], message: str) -> None:
    before = (imported.root / "WORKSPACE.toml").read_text()

    ran = imported.run("import", *arguments)

    assert ran.code == 2
    assert message in ran.err
    assert (imported.root / "WORKSPACE.toml").read_text() == before


@pytest.mark.parametrize("name", ["smile \U0001f600", "del\x7f", "hex\\x41", 'a "quoted" name'])
def test_a_checkout_of_any_name_leaves_the_workspace_readable(tmp_path: Path, name: str) -> None:
    workspace = CliWorkspace.make(tmp_path)
    (workspace.root / f"../{name}/KernelBench/level1/1_directory.py").mkdir(parents=True)

    ran = workspace.run("import", "kernelbench", f"../{name}")

    assert ran.code == 0, ran.err
    assert "[[repository]]" in (workspace.root / "WORKSPACE.toml").read_text()
    assert workspace.run("query", "//...").code == 2  # which has no tasks, and can be read
    assert "no tasks yet" in workspace.run("query", "//...").err


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "the path of the checkout is empty"),
        ("~nobody-of-that-name/x", "cannot be followed"),
        (os.fsdecode(b"bad\xff"), "the path of the checkout is not UTF-8"),
    ],
)
def test_a_path_that_can_be_none_is_refused(tmp_path: Path, path: str, said: str) -> None:
    workspace = CliWorkspace.make(tmp_path)
    mark = workspace.root / os.fsdecode(b"bad\xff") / "KernelBench/level1"
    (mark / "1_directory.py").mkdir(parents=True)
    before = (workspace.root / "WORKSPACE.toml").read_text()

    ran = workspace.run("import", "kernelbench", path)

    assert ran.code == 2
    assert said in ran.err
    assert (workspace.root / "WORKSPACE.toml").read_text() == before


def test_an_agent_works_on_an_imported_task(imported: CliWorkspace) -> None:
    """It sees the original's file, and no file that only the judge has."""
    assert "1_Scaled.py" in visited(imported, "@kb//level1/1_Scaled", "compile,correctness")
