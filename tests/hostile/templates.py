"""The workspaces that cases begin with, and stores in which everything of them is cached."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from tests.hostile.call import Call
from tests.hostile.forkserver import Forkserver
from tests.hostile.ground import BASE, rows
from tests.testkit.generated import generate

TASKS = 3
FAILS = "tasks/family0/t2"
"""The task whose gates fail; those of the others pass."""

WORKSPACE = """\
name = "hostile"
kabuild = ">=0.1"

[defaults]
platform = "cpu"

[scoring]
policy = "aka"
salt = "kabuild-public-1"

[cache]
size = "1G"

[agents]
mine = "//agents:mine"

[toolchains]
"//toolchains/cuda:nvcc" = "//toolchains/mine:mine"

[config.quick]
gates = ["compile", "correctness"]
jobs = 2
"""
_SIGNATURE = """
reference = "reference.py"
brief     = "y = 2 x."
entry     = "twice"
inputs    = { x = "T[n, m]" }
outputs   = { y = "T[n, m]" }
scalars   = { scale = 1.0 }
dims      = { n = "1..65536", m = "1..64" }
dtypes    = ["f32", "f16"]
configs   = [ { n = 1048, m = 3 }, { n = 16, m = 2, dtype = "f16" } ]
limits    = { cpu = { elements = 4096 } }
flops     = "2 * n * m"
tolerance = { f16 = { atol = 1e-3, rtol = 1e-3 } }
tags      = ["quick"]
correctness = { call_seconds = 0.2, edges = 1, repeats = 2, distributions = ["default"] }
perf      = { processes = 3, samples = 2, budget_seconds = 0.1 }
unseen    = { count = 8 }
"""
_TASKS = {
    "real/double": '[[hip2hip]]\nname = "double"\nkernel = "double.hip"' + _SIGNATURE,
    "real/twice": '[[triton2triton]]\nname = "twice"\nkernel = "twice.py"' + _SIGNATURE,
    "real/rotate": '[[torch2hip]]\nname = "rotate"\nkernel = "rotate.hip"' + _SIGNATURE,
}
_TOOLS = """\
[[toolchain]]
name = "mine"
role = "agent-cli"
doc = "One that is here."
platforms = ["cpu"]
local = "/usr/share/doc"
paths = ["adduser"]

[[toolchain]]
name = "wheel"
role = "x"
pypi = ["x==1.0"]
machines = ["linux-x86_64"]
strip_prefix = "x"
links = { "a/b" = "../c" }
requires = ["x|y"]

[[toolchain]]
name = "archive"
role = "x"
archive = "https://localhost:1/x.tar.gz"
sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
"""
_AGENTS = """\
[[agent]]
name = "mine"
command = ["{python}", "{files}/agent.py", "{kernel}", "--task={prompt_file}"]
files = ["agent.py"]
secrets = ["MY_API_KEY"]
network = "proxy"
hosts = ["models.example.com:443"]
"""


def make(home: Path, server: Forkserver) -> float:
    """Make all templates below ``home``; the seconds that a build took."""
    seconds = _make_gates(home, server)
    _make_tasks(home)
    return seconds


def _make_gates(home: Path, server: Forkserver) -> float:
    """``gates``: tasks of five gates that take milliseconds, all cached; a bundle, an export."""
    root = BASE / "ws"
    shutil.rmtree(BASE, ignore_errors=True)
    generate(root, TASKS, shared=2)
    (root / FAILS / "kernel.hip").write_text("bad\n")
    (root / "WORKSPACE.toml").write_text(WORKSPACE)
    env = {
        "HOME": str(BASE / "home"),
        "PATH": os.environ["PATH"],
        "KABUILD_CACHE": str(BASE / "store"),
    }
    seconds = 0.0
    for argv, code in (
        (("test", "//tasks/...", "--json"), 3),
        (("publish", "//tasks/...", "-o", "made.kab"), 0),
        (("cache", "export", "made.kcache", "//tasks/..."), 0),
    ):
        made = server.run(Call(argv, str(root), env))
        assert made.code == code, made.text
        if "--json" in argv:
            seconds = made.seconds
            found = json.loads(made.out)
            assert {entry["verdict"] for entry in found["targets"]} == {"PASS", "FAIL", "SKIPPED"}
            (BASE / "truth.json").write_text(json.dumps(rows(found)))
    shutil.rmtree(root / "out")
    shutil.copytree(BASE, home / "gates", symlinks=True)
    return seconds


def _make_tasks(home: Path) -> None:
    """``tasks``: beside them real declarations of all sorts, of which nothing is built."""
    shutil.copytree(home / "gates", home / "tasks", symlinks=True)
    root = home / "tasks" / "ws"
    for package, text in _TASKS.items():
        name = package.rpartition("/")[2]
        folder = root / package
        (folder / "solutions/expert").mkdir(parents=True)
        (folder / "BUILD.toml").write_text(text)
        (folder / "reference.py").write_text("def inputs(config, generator): ...\n")
        for file in (f"{name}.hip", f"{name}.py"):
            (folder / file).write_text("\n")
            (folder / "solutions/expert" / file).write_text("\n")
    for package, text in (("toolchains/mine", _TOOLS), ("agents", _AGENTS), ("real/runtime", "")):
        (root / package).mkdir(parents=True)
        (root / package / "BUILD.toml").write_text(text)
    (root / "agents/agent.py").write_text("\n")
    (root / "real/runtime/BUILD.toml").write_text('[[hip_cpu]]\nname = "runtime"\n')
    (root / "toolchains/lock.toml").write_text(_LOCK)


_LOCK = """\
schema = 1

["//toolchains/mine:wheel"]
kind = "pypi"
declared = ["x==1.0", "linux-x86_64"]

["//toolchains/mine:wheel".files.linux-x86_64]
"x-1.0-py3-none-any.whl" = { pin = "x==1.0", size = 9, sha256 = "DIGEST" }

["//toolchains/mine:mine"]
kind = "local"
declared = ["/usr/share/doc", "adduser"]
home = "/usr/share/doc"
paths = ["adduser"]
tree = "DIGEST"
""".replace("DIGEST", "3f" * 32)
