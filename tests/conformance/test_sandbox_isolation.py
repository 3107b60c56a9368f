"""What every sandbox must hide from, and refuse to, the process inside.

Runs against ours and, as a second opinion on the tests themselves, against bubblewrap where it
is installed.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kabuild.sandbox import Spawner, probe
from tests.kabuild.sandbox.boxes import ENV, PYTHON_TREES, Box

pytestmark = pytest.mark.skipif(probe() is not None, reason=f"no namespaces: {probe()}")

Look = Callable[..., Any]


@pytest.fixture(scope="module")
def spawner() -> Iterator[Spawner]:
    with Spawner() as spawner:
        yield spawner


@pytest.fixture(params=["kabuild", "bwrap"])
def look(request: pytest.FixtureRequest, spawner: Spawner, tmp_path: Path) -> Look:
    """Runs a script in the sandbox and gives back what it assigned to ``seen``."""
    box = Box(spawner, tmp_path)
    box.inputs.mkdir()
    if request.param == "bwrap" and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")

    def run(source: str, *arguments: str) -> Any:
        script = f"import json, os, socket\n{textwrap.dedent(source)}\nprint(json.dumps(seen))\n"
        if request.param == "kabuild":
            done = box.python(script, *arguments)
            return json.loads(done.stdout or done.stderr.decode())
        (box.inputs / "script.py").write_text(script)
        command = [*_bwrap(box.inputs), sys.executable, "script.py", *arguments]
        return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)

    return run


def _bwrap(inputs: Path) -> list[str]:
    (inputs / "out").mkdir(exist_ok=True)
    trees = [part for tree in ("/usr", *PYTHON_TREES) for part in ("--ro-bind", tree, tree)]
    links = [
        part
        for name in ("/bin", "/lib", "/lib64")
        if Path(name).is_symlink()
        for part in ("--symlink", str(Path(name).readlink()), name)
    ]
    env = [part for name, value in ENV.items() for part in ("--setenv", name, value)]
    return [
        *("bwrap", "--unshare-all", "--hostname", "kabuild", "--uid", "1000", "--gid", "1000"),
        *("--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"),
        *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
        *trees,
        *links,
        *env,
        *("--ro-bind", str(inputs), "/exec", "--tmpfs", "/exec/out", "--chdir", "/exec"),
        *("--remount-ro", "/"),
    ]


def test_loopback_of_the_host_is_unreachable(look: Look) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        socket.create_connection(("127.0.0.1", port)).close()
        seen = look(
            """
            import sys
            try:
                socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=5)
                seen = "connected"
            except OSError as error:
                seen = type(error).__name__
            """,
            str(port),
        )

    assert seen != "connected"


def test_no_interface_but_loopback(look: Look) -> None:
    assert look("seen = [name for _, name in socket.if_nameindex()]") == ["lo"]


def test_no_route_anywhere(look: Look) -> None:
    seen = look(
        """
        try:
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("192.0.2.1", 9))
            seen = "routed"
        except OSError as error:
            seen = error.errno
        """
    )

    assert seen == 101  # ENETUNREACH


def test_abstract_sockets_of_the_host_are_unreachable(look: Look) -> None:
    name = f"\0kabuild-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        seen = look(
            """
            import sys
            try:
                socket.socket(socket.AF_UNIX).connect("\\0" + sys.argv[1])
                seen = "connected"
            except OSError as error:
                seen = type(error).__name__
            """,
            name[1:],
        )

    assert seen == "ConnectionRefusedError"


def test_undeclared_files_are_invisible(look: Look, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    probes = [str(secret), str(Path(__file__)), "/home", "/var", "/boot", "/etc/shadow", "/run"]

    assert look("import sys\nseen = [p for p in sys.argv[1:] if os.path.exists(p)]", *probes) == []


def test_the_root_directory_holds_only_what_was_given(look: Look) -> None:
    allowed = {"bin", "dev", "etc", "exec", "lib", "lib32", "lib64", "libx32", "proc", "sbin"}
    allowed |= {"sys", "tmp", "usr", *(Path(tree).parts[1] for tree in PYTHON_TREES)}

    assert set(look('seen = os.listdir("/")')) <= allowed


def test_processes_of_the_host_are_invisible(look: Look) -> None:
    seen = look('seen = [int(name) for name in os.listdir("/proc") if name.isdecimal()]')

    assert len(seen) <= 3
    assert os.getpid() not in seen or os.getpid() <= 3


def test_processes_of_the_host_cannot_be_signalled(look: Look) -> None:
    seen = look(
        """
        import sys
        try:
            os.kill(int(sys.argv[1]), 0)
            seen = "reached"
        except OSError as error:
            seen = type(error).__name__
        """,
        str(os.getpid()),
    )

    assert seen == "ProcessLookupError"


def test_the_host_name_is_its_own(look: Look) -> None:
    assert look("seen = socket.gethostname()") == "kabuild" != socket.gethostname()


def test_tmp_is_private(look: Look) -> None:
    seen = look(
        """
        seen = os.listdir("/tmp")
        open("/tmp/left-by-a-sandbox", "w").close()
        """
    )

    # A toolchain that lies below the host's /tmp is mounted there, and nothing else is.
    shown = {Path(tree).parts[2] for tree in PYTHON_TREES if Path(tree).is_relative_to("/tmp")}
    assert set(seen) == shown
    assert not Path("/tmp/left-by-a-sandbox").exists()


@pytest.mark.parametrize(
    "change",
    [
        'open("script.py", "w")',
        'open("/exec/new", "w")',
        'os.unlink("script.py")',
        'os.rename("script.py", "out/script.py")',
        'os.chmod("script.py", 0o777)',
        'os.utime("script.py")',
        'os.mkdir("/new")',
        'os.unlink("/usr/bin/env")',
        'open("/usr/new", "w")',
        "open(os.path.join(sys.prefix, 'new'), 'w')",
    ],
)
def test_inputs_and_system_are_read_only(look: Look, change: str) -> None:
    seen = look(
        f"""
        import sys
        try:
            {change}
            seen = "changed"
        except OSError as error:
            seen = error.errno
        """
    )

    assert seen in {18, 30}  # EROFS; EXDEV for the rename


def test_nothing_can_be_remounted_writable(look: Look) -> None:
    seen = look(
        """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        remount_bind = 32 | 4096
        seen = [libc.mount(None, b"/exec", None, remount_bind, None), ctypes.get_errno()]
        """
    )

    assert seen == [-1, 1]


def test_the_environment_is_exact(look: Look) -> None:
    seen = look("seen = [dict(os.environ), open('/proc/self/environ').read()]")
    inside, outside = seen
    inside.pop("PWD", None)  # bubblewrap sets it

    assert inside == ENV
    assert set(filter(None, outside.split("\0"))) - {"PWD=/exec"} == {
        f"{name}={value}" for name, value in ENV.items()
    }


def test_only_standard_descriptors_are_open(look: Look) -> None:
    seen = look('fds = os.listdir("/proc/self/fd")\nseen = [fd for fd in fds if int(fd) > 3]')

    assert seen == []


def test_no_capability_is_left(look: Look) -> None:
    seen = look(
        """
        lines = [line.split() for line in open("/proc/self/status")]
        seen = {line[0]: line[1] for line in lines if line[0].startswith(("Cap", "NoNew"))}
        """
    )

    assert seen["NoNewPrivs:"] == "1"
    assert {int(seen[name], 16) for name in ("CapPrm:", "CapEff:", "CapInh:", "CapAmb:")} == {0}


def test_set_user_id_programs_are_inert(look: Look, tmp_path: Path) -> None:
    program = tmp_path / "exec" / "whoami"
    shutil.copy("/usr/bin/id", program)
    program.chmod(0o6755)
    seen = look(
        """
        import subprocess
        ids = [subprocess.check_output([p, "-u"], text=True) for p in ("./whoami", "/usr/bin/id")]
        seen = [len(set(ids)), [bool(os.statvfs(p).f_flag & os.ST_NOSUID) for p in ("/usr", ".")]]
        """
    )

    assert seen == [1, [True, True]]


def test_devices_cannot_be_made(look: Look) -> None:
    seen = look(
        """
        import stat
        try:
            os.mknod("/tmp/kmem", stat.S_IFCHR | 0o666, os.makedev(1, 2))
            seen = "made"
        except PermissionError:
            seen = "refused"
        """
    )

    assert seen == "refused"


def test_the_usual_devices_work(look: Look) -> None:
    seen = look(
        """
        open("/dev/null", "w").write("gone")
        seen = [open("/dev/zero", "rb").read(2).hex(), len(open("/dev/urandom", "rb").read(8))]
        seen.append(os.path.isdir("/dev/shm") and os.path.exists("/dev/fd/0"))
        """
    )

    assert seen == ["0000", 8, True]


def test_no_disk_and_no_kernel_memory_in_dev(look: Look) -> None:
    seen = look('seen = [n for n in os.listdir("/dev") if n.startswith(("sd", "vd", "mem", "k"))]')

    assert seen == []


def test_merged_directories_stay_links(look: Look) -> None:
    if not Path("/bin").is_symlink():
        pytest.skip("this system does not merge /usr")

    assert look('seen = os.readlink("/bin")') == str(Path("/bin").readlink())
