"""A platform is one directory: a toy one, with two boards that are plain files, in a workspace."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.testkit.cli import CliWorkspace

SPEC = """\
doc     = "Toy boards."
device  = "toy board"
example = "t1"
visible = ["TOY_BOARDS"]
"""
ARCHITECTURES = 't1 = { cores = 4 }\nt2 = { cores = 8, variants = ["t2x"] }\n'
DRIVER = """\
from kabuild.platform import CHOSEN, Device, Devices, Exposure, Remark

from .boards import BOARDS


class Toy:
    def probe(self) -> Devices:
        found = tuple(
            Device("toy", index, f"TOY-{index}", arch, (("device", "Toy 9"),), nodes=(str(file),))
            for index, (file, arch) in enumerate(BOARDS)
        )
        return Devices("toy", found, "" if found else "no board is plugged in")

    def lost(self, device: Device) -> str:
        return ""

    def users(self, device: Device) -> tuple[int, ...]:
        return ()

    def exposure(self, device: Device) -> Exposure:
        return Exposure(device.nodes, (("TOY_HOME", "/toy"),), ((CHOSEN, device.uuid),))

    def remarks(self) -> tuple[Remark, ...]:
        return (Remark("toy firmware", "1.0", good=True),)


DRIVER = Toy()
"""
BOARDS = """\
from pathlib import Path

BOARDS = [
    (Path(__file__).with_name("board0"), "t1"), (Path(__file__).with_name("board1"), "t3")
]
"""
RULE = """\
from kabuild.rule import Context, Resources, Rule, attr


def implement(ctx: Context) -> None:
    on_board = ctx.platform.name == "toy"
    ctx.action(
        "",
        argv=("/bin/sh", "-c", "{ echo $KABUILD_DEVICE $TOY_HOME " + ctx.platform.get("arch")
              + "; cat " + (ctx.attrs["board"] if on_board else "/dev/null") + "; } > out/said"),
        inputs={},
        outputs=("said",),
        mnemonic="Toy",
        resources=Resources(lease=ctx.platform.name) if on_board else Resources(),
    )


RULE = Rule(kind="toy", doc="Reads a board.", implement=implement,
            attrs={"board": attr.string("Its device file.", required=True)})
"""


JUDGED = """\
from base.device_platform import DevicePlatform, DriverLibrary

PLATFORM = DevicePlatform(
    name="toy",
    maker="Toymaker",
    driver=DriverLibrary(("libtoy.so.1",), "toy"),
    torch_device="cpu",
    torch_version="toy",
    out_of_memory=("the board is full",),
    device_files=("toy*",),
    triton_utilities=("toys", "Utilities"),
)
"""


@pytest.fixture
def workspace(workspace: CliWorkspace) -> CliWorkspace:
    """Adds the platform, and a task that runs on it; nothing else is touched."""
    home = workspace.write("toolchains/platforms/toy/platform.toml", SPEC).parent
    files = {"architectures.toml": ARCHITECTURES, "devices.py": DRIVER, "boards.py": BOARDS}
    for name, text in {**files, "board0": "hello from board 0", "board1": "no"}.items():
        (home / name).write_text(text)
    workspace.write("rules/toy/rule.py", RULE)
    workspace.write("t/BUILD.toml", f'[[toy]]\nname = "t"\nboard = "{home}/board0"\n')
    return workspace


def test_an_action_runs_on_its_device_and_its_platform_is_in_the_key(
    workspace: CliWorkspace,
) -> None:
    ran = workspace.run("build", "//t", "--platform=toy")

    assert ran.code == 0, ran.err
    said = (workspace.root / "out/t/t/said").read_text()
    assert said == "TOY-0 /toy t1\nhello from board 0"
    assert not workspace.run("build", "//t", "--platform=toy").executed
    assert workspace.run("build", "//t").executed == {"//t:t"}


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (("--platform=toy:t2x",), 36, "no toy:t2x device on this machine: toy:0 is t1"),
        (("--platform=toy:t9",), 2, "unknown toy architecture 't9'\n  known: t1, t2, t2x"),
        (("--platform=toys",), 2, "unknown platform 'toys'\n  did you mean 'toy'?"),
        (("--platform=t2x",), 2, "unknown platform 't2x'\n  did you mean 'toy:t2x'?"),
        (("--platform=metal",), 2, "unknown platform 'metal'\n  platforms: cpu, cuda, rocm, toy"),
        (("--platform=toy", "--devices=1"), 36, "toy:1 cannot be used: nothing here compiles for"),
    ],
)
def test_what_cannot_be_had_says_what_there_is(
    workspace: CliWorkspace, flags: tuple[str, ...], code: int, said: str
) -> None:
    ran = workspace.run("build", "//t", *flags)

    assert (ran.code, said in ran.err + ran.out) == (code, True), ran.err + ran.out
    assert not (workspace.root / "out/t/t/said").exists()


def test_a_variable_hides_devices(workspace: CliWorkspace) -> None:
    workspace.env["TOY_BOARDS"] = "1"

    ran = workspace.run("build", "//t", "--platform=toy")

    assert ran.code == 36
    assert "no toy device on this machine: toy:1 cannot be used" in ran.err
    assert "to cross-compile, pass --platform=toy:t1 to 'kabuild build'; judging" in ran.err


def test_what_cannot_cross_compile_is_not_told_to(workspace: CliWorkspace) -> None:
    workspace.env["TOY_BOARDS"] = "1"

    ran = workspace.run("analyze", "//t", "--platform=toy")

    assert ran.code == 36
    assert "cross-compile" not in ran.err
    assert "leave out --platform: without a GPU, it counts on the CPU" in ran.err


def test_doctor_info_and_toolchain_list_show_it(workspace: CliWorkspace) -> None:
    workspace.write(
        "toolchains/toycc/BUILD.toml",
        '[[toolchain]]\nname = "toycc"\nrole = "toy-compiler"\nplatforms = ["toy"]\n'
        'local = "/usr/lib/os-release"\n',
    )
    declared = workspace.root / "toolchains/platforms/toy/platform.toml"
    declared.write_text(SPEC + '[[packages]]\nname = "toy-python"\nuse = "asks boards"\n')
    findings = {item["name"]: item["found"] for item in workspace.run("doctor", "--json").json}

    assert findings["toy board"] == "2, 1 to judge on with --platform=toy"
    assert findings["toy:0"] == "Toy 9, t1; free"
    assert findings["toy:1"].endswith("cannot be used: nothing here compiles for t3")
    assert findings["toy firmware"] == "1.0"
    assert findings["toy-python"] == "not installed (asks boards)"
    assert "toy:0 (Toy 9), toy:1 (Toy 9)" in workspace.run("info", "devices").out
    (line,) = [x for x in workspace.run("toolchain", "list").out.splitlines() if "toycc" in x]
    assert "toy-compiler" in line
    assert " toy " in line


@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        ("platform.toml", lambda t: t + 'visibel = ["X"]\n', ":5: unknown key 'visibel'"),
        ("platform.toml", lambda t: t.replace('"toy board"', "3"), ":2: 'device': found the int"),
        ("platform.toml", lambda t: t.replace('"t1"', '"t7"'), ":3: unknown toy architecture 't7'"),
        ("platform.toml", lambda t: t.replace("doc", "#"), "the platform has no 'doc'"),
        ("platform.toml", lambda t: t + 'pytorch = "("\n', ":5: 'pytorch': '(' is not a regular"),
        ("platform.toml", lambda t: t + 'profiler = "//a b"\n', ":5: 'profiler': "),
        (
            "platform.toml",
            lambda t: t + '[[packages]]\nname = "x"\n',
            ":5: 'packages': a package has",
        ),
        ("architectures.toml", lambda t: t + "t3 = 1\n", ":3: 't3' is the integer 1, expected a"),
        ("architectures.toml", lambda t: t + 'z = { variants = ["t1"] }\n', ":3: 't1' is declared"),
        ("devices.py", lambda t: t.replace("import CHOSEN", "import NOTHING"), "/devices.py:1: "),
        ("devices.py", lambda t: t.replace("DRIVER =", "WHEEL ="), "/devices.py: "),
        ("boards.py", lambda t: "BOARDS = [1]\n", "/devices.py:"),
        ("boards.py", lambda _: "raise SystemExit(0)\n", "/boards.py:1: "),
    ],
)
def test_a_broken_platform_is_one_error_with_its_place(
    workspace: CliWorkspace, file: str, change: Callable[[str], str], said: str
) -> None:
    broken = workspace.root / "toolchains/platforms/toy" / file
    broken.write_text(change(broken.read_text()))

    ran = workspace.run("build", "//t", "--platform=toy")

    assert ran.code == 1, ran.err
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert workspace.run("build", "//t").code == 0


@pytest.fixture
def judged(workspace: CliWorkspace) -> CliWorkspace:
    """The platform also says what judges have to know; a task of a family that ships is new."""
    workspace.write("toolchains/platforms/toy/tools/toy_device.py", JUDGED)
    assert workspace.run("new", "task", "call/mine").code == 0
    return workspace


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("toy", "is not built for Toymaker's devices"),
        ("__version__", "libtoy.so.1 is not installed"),
    ],
)
def test_a_judge_knows_the_platform_by_its_directory(
    judged: CliWorkspace, version: str, said: str
) -> None:
    """Nothing of kabuild's is touched: the platform's file says what the judge looks for."""
    judged.write(
        "toolchains/platforms/toy/tools/toy_device.py",
        JUDGED.replace('torch_version="toy"', f'torch_version="{version}"'),
    )

    flags = ("--agent=none", "--platform=toy", "--gates=compile,correctness")
    ran = judged.run("test", "//tasks/call/mine", *flags)

    assert ran.code == 36, ran.err + ran.out
    assert "NO_DEVICE: no toy device on this machine: " in ran.out + ran.err
    assert said in ran.out + ran.err


def test_a_platform_that_tells_judges_nothing_is_one_error(judged: CliWorkspace) -> None:
    (judged.root / "toolchains/platforms/toy/tools/toy_device.py").unlink()

    flags = ("--agent=none", "--platform=toy", "--gates=compile,correctness")
    ran = judged.run("test", "//tasks/call/mine", *flags)

    assert ran.code == 1, ran.err + ran.out
    assert "toolchains/platforms/toy/tools/toy_device.py" in ran.err + ran.out
    assert "Traceback" not in ran.err + ran.out
