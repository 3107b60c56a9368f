"""The script that installs buildbox beside a distribution: ``kabuild worker config buildbox``.

``apt-get`` and ``dpkg-deb`` are doubles; ``make fleet`` runs the script with Debian's.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kabuild.worker.setup import Site, files_of

KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
LIBRARIES = "usr/lib/x86_64-linux-gnu"
APT_GET = """#!/bin/sh
echo "$*" >>"$LOG"
case " $* " in
*" update "*) grep -h -o ' http[^ ]* testing main' "${APT_CONFIG%conf}sources.list" >>"$LOG" ;;
*" buildbox "*) : >"${APT_CONFIG%conf}archives/buildbox.deb" ;;
esac
"""
DPKG_DEB = f"""#!/bin/sh
[ "$1 ${{2##*/}}" = "-x buildbox.deb" ] || exit 2
mkdir -p "$3/usr/bin" "$3/{LIBRARIES}"
cat >"$3/{LIBRARIES}/ld-linux-x86-64.so.2" <<END
#!/bin/sh
printf '<%s>' "\\$@"
END
chmod 755 "$3/{LIBRARIES}/ld-linux-x86-64.so.2"
: >"$3/usr/bin/buildbox-worker"
: >"$3/usr/bin/buildbox-casd"
: >"$3/usr/bin/bwrap"
"""

pytestmark = pytest.mark.skipif(not KEYS.exists(), reason="no keys of Debian's archive")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    directory = tmp_path / "tools"
    directory.mkdir()
    for name, text in (("apt-get", APT_GET), ("dpkg-deb", DPKG_DEB)):
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)
    return directory


def run(tools: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    script = tools.parent / "get-buildbox"
    script.write_text(files_of("buildbox", Site(host="grid.example"))["get-buildbox"])
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    variables = {"PATH": path, "LOG": str(tools.parent / "log"), **environment}
    argv = ["sh", str(script), *arguments]
    return subprocess.run(argv, env=variables, capture_output=True, text=True, check=False)


def test_the_programs_start_with_their_own_libraries(tools: Path, tmp_path: Path) -> None:
    top = tmp_path / "opt"

    done = run(tools, str(top), DEBIAN_MIRROR="http://mirror.example/debian")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"installed: {top}/bin/buildbox-worker and 1 others\n"
    argv = [str(top / "bin/buildbox-worker"), "--a b", ""]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    root = f"{top}/root"
    expected = f"<--library-path><{root}/{LIBRARIES}><{root}/usr/bin/buildbox-worker><--a b><>"
    assert said == expected
    assert {path.name for path in top.iterdir()} == {"bin", "root"}
    assert " http://mirror.example/debian testing main" in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "must get one argument: the directory"),
        (("a", "b"), "must get one argument: the directory"),
        (("with space",), "with space: must have only letters, digits, and /._+-"),
        (("tools/apt-get",), "cannot write to "),
    ],
)
def test_a_bad_directory_is_named(tools: Path, arguments: tuple[str, ...], problem: str) -> None:
    done = run(tools, *(str(tools.parent / name) for name in arguments))

    assert done.returncode == 1
    assert problem in done.stderr.splitlines()[-1]
    assert done.stderr.splitlines()[-1].startswith("get-buildbox: ")


def test_an_installation_is_not_replaced(tools: Path, tmp_path: Path) -> None:
    assert run(tools, str(tmp_path / "opt")).returncode == 0

    done = run(tools, str(tmp_path / "opt"))

    assert done.returncode == 1
    assert f"{tmp_path}/opt/root exists: remove it" in done.stderr


def test_a_failed_download_can_be_repeated(tools: Path, tmp_path: Path) -> None:
    (tools / "apt-get").write_text("#!/bin/sh\nexit 100\n")
    failed = run(tools, str(tmp_path / "opt"), DEBIAN_MIRROR="http://mirror.example")
    (tools / "apt-get").write_text(APT_GET)

    assert failed.returncode == 1
    assert "cannot read http://mirror.example; another mirror: DEBIAN_MIRROR=URL" in failed.stderr
    assert run(tools, str(tmp_path / "opt")).returncode == 0
