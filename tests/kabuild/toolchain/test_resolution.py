"""Declared toolchains against what is on a machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kabuild.base.errors import LoadError, Position, Reason, ToolchainError
from kabuild.loading import Loader, load_workspace
from kabuild.model.action import Toolchain
from kabuild.model.label import Label
from kabuild.toolchain import Declaration, hash_record, resolve
from kabuild.toolchain.aliases import with_aliases

if TYPE_CHECKING:
    from tests.kabuild.conftest import Project

Install = Callable[..., Path]
ROOT = Path(__file__).parents[3]


def python() -> tuple[str, ...]:
    """Where this Python is, by all names: it may be behind links."""
    return tuple(dict.fromkeys((*with_aliases(sys.prefix), *with_aliases(sys.base_prefix))))


def declare(project: Project, pin: str) -> Declaration:
    project.write("t/BUILD.toml", f'[[toolchain]]\nname = "t"\nrole = "r"\n{pin}\n')
    return Declaration.of(project.loader().target(Label("t", "t")))


def failure(declaration: Declaration) -> ToolchainError:
    with pytest.raises(ToolchainError) as caught:
        resolve(declaration)
    assert caught.value.position == Position("t/BUILD.toml", 1)
    return caught.value


def test_an_environment(project: Project, install: Install, site: Path) -> None:
    install("torch", requires=("numpy",))
    install("numpy")
    toolchain = resolve(declare(project, 'environment = ["torch"]'))
    assert (toolchain.name, toolchain.role, toolchain.home) == ("t", "r", sys.prefix)
    assert toolchain.mounts == python()
    names = [item["name"] for item in json.loads(toolchain.fingerprint)["distributions"]]
    assert names == ["numpy", "torch"]


def test_distributions_outside_the_environment_are_mounted_too(
    project: Project, install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = tmp_path / "user"
    install("a", at=user)
    monkeypatch.setattr(sys, "path", [str(user)])
    toolchain = resolve(declare(project, 'environment = ["a"]'))
    assert toolchain.mounts == (*python(), str(user))


def test_links_to_an_environment_and_what_they_lead_to_are_mounted(
    project: Project, install: Install, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ``.venv`` may be one, and as uv names its Pythons."""
    install("zig")
    for name in ("prefix", "base_prefix"):
        (tmp_path / "real" / name).mkdir(parents=True)
        (tmp_path / name).symlink_to(f"real/{name}")
        monkeypatch.setattr(sys, name, str(tmp_path / name))
    toolchain = resolve(declare(project, 'environment = ["zig"]'))
    assert toolchain.home == str(tmp_path / "prefix")
    for name in ("prefix", "base_prefix"):
        assert {str(tmp_path / name), str(tmp_path / "real" / name)} <= {*toolchain.mounts}


def test_a_missing_distribution_names_the_command(project: Project, site: Path) -> None:
    error = failure(declare(project, 'environment = ["torch", "triton"]'))
    assert error.reason is Reason.NO_TOOLCHAIN
    assert "//t needs torch, which is not installed" in error.message
    assert error.hint.endswith("-m pip install 'torch' 'triton'")


def test_content_that_nobody_recorded_is_refused(project: Project, install: Install) -> None:
    install("a", requires=("b",))
    install("b", record=None)
    error = failure(declare(project, 'environment = ["a"]'))
    assert error.reason is Reason.NO_TOOLCHAIN
    assert "b 1.0 was installed without a RECORD" in error.message


def test_code_outside_of_the_environment_is_refused(project: Project, install: Install) -> None:
    told = install("a") / "direct_url.json"
    declaration = declare(project, 'environment = ["a"]')
    told.write_text('{"url": "file:///wheels/a.whl", "archive_info": {}}')
    resolve(declaration)

    told.write_text('{"url": "file:///src/a", "dir_info": {"editable": true}}')

    error = failure(declaration)
    assert error.reason is Reason.NO_TOOLCHAIN
    assert "a 1.0 was installed as editable, so its content is unknown" in error.message


def test_a_distribution(project: Project, install: Install, site: Path) -> None:
    install("zig-lang", "0.17.0")
    declaration = declare(project, 'distribution = "zig-lang"\nversion = "0.17.0"')
    toolchain = resolve(declaration, name="zig")
    assert toolchain.name == "zig"
    assert toolchain.home == str(site / "zig_lang")
    assert toolchain.mounts == (toolchain.home,)
    assert json.loads(toolchain.fingerprint)["version"] == "0.17.0"


def test_another_version_names_both_and_the_command(project: Project, install: Install) -> None:
    install("zig", "0.16.0")
    error = failure(declare(project, 'distribution = "zig"\nversion = "0.17.0"'))
    assert error.reason is Reason.TOOLCHAIN_DRIFT
    assert error.message == "//t is pinned to zig 0.17.0; 0.16.0 is installed"
    assert error.hint.endswith("-m pip install 'zig==0.17.0'")


def test_a_distribution_that_is_not_there(project: Project, site: Path) -> None:
    error = failure(declare(project, 'distribution = "zig"\nversion = "0.17.0"'))
    assert error.reason is Reason.NO_TOOLCHAIN
    assert error.hint.endswith("-m pip install 'zig==0.17.0'")


def test_a_distribution_without_its_directory(
    project: Project, install: Install, site: Path
) -> None:
    install("zig")
    (site / "zig").rmdir()
    error = failure(declare(project, 'distribution = "zig"\nversion = "1.0"'))
    assert error.reason is Reason.NO_TOOLCHAIN
    assert "has no package directory" in error.message


def test_a_local_tree(project: Project, tmp_path: Path) -> None:
    home = tmp_path / "opt"
    (home / "bin").mkdir(parents=True)
    (home / "bin/cc").write_text("cc")
    toolchain = resolve(declare(project, f'local = "{home}"\npaths = ["bin"]'))
    assert (toolchain.home, toolchain.mounts) == (str(home), (str(home),))
    assert str(home) not in toolchain.fingerprint.decode()

    alias, other = tmp_path / "alias", tmp_path / "etc/other"
    other.parent.mkdir()
    other.symlink_to("../opt")
    alias.symlink_to("etc/../etc/other")
    linked = resolve(declare(project, f'local = "{alias}"\npaths = ["bin"]'))
    assert linked.fingerprint == toolchain.fingerprint
    assert (linked.home, linked.mounts) == (str(home), (str(home), str(alias), str(other)))


def test_a_local_tree_that_lacks_a_part(project: Project, tmp_path: Path) -> None:
    error = failure(declare(project, f'local = "{tmp_path}"\npaths = ["bin/cc"]'))
    assert error.reason is Reason.NO_TOOLCHAIN
    assert f"{tmp_path}/bin/cc does not exist" in error.message


def test_a_file_is_no_local_tree(project: Project, tmp_path: Path) -> None:
    (tmp_path / "cc").touch()
    error = failure(declare(project, f'local = "{tmp_path}/cc"'))
    assert error.reason is Reason.NO_TOOLCHAIN
    assert f"{tmp_path}/cc is not a directory" in error.message


def test_a_local_tree_that_cannot_be_read(project: Project, tmp_path: Path) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    (tmp_path / "opt").mkdir()
    (tmp_path / "opt/secret").write_text("x")
    declaration = declare(project, f'local = "{tmp_path / "opt"}"')
    with pytest.raises(ToolchainError, match="opt/secret: Permission denied"):
        resolve(declaration, file_digest=refuse)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pin", "line", "message"),
    [
        ("", 1, "exactly one pin, found none"),
        ('local = "/a"\nenvironment = ["x"]', 4, "found 'environment' and 'local'"),
        ('distribution = "x"', 4, "'version' and 'distribution' belong together"),
        ('local = "/a"\nversion = "1"', 5, "belong together"),
        ('environment = ["x"]\npaths = ["a"]', 5, "'paths' belongs to 'local'"),
        ('local = "a/b"', 4, "'a/b' is not an absolute path"),
        ('local = "/a"\npaths = ["b", "../c"]', 5, "'../c' is not a path below"),
    ],
)
def test_bad_declarations(project: Project, pin: str, line: int, message: str) -> None:
    with pytest.raises(LoadError, match=r".+") as caught:
        declare(project, pin)
    assert message in str(caught.value)
    assert caught.value.position == Position("t/BUILD.toml", line)


def test_platforms(project: Project) -> None:
    anywhere = declare(project, 'local = "/a"')
    assert anywhere.supports("cpu")
    project.write("toolchains/platforms/cuda/platform.toml")
    somewhere = declare(project, 'local = "/a"\nplatforms = ["cuda"]')
    assert not somewhere.supports("cpu")
    assert somewhere.supports("cuda")


@pytest.fixture(scope="module")
def own() -> Loader:
    return Loader(load_workspace(ROOT))


def find(own: Loader, label: str) -> Toolchain:
    return resolve(Declaration.of(own.target(Label.parse(label))))


def test_our_python(own: Loader) -> None:
    python = find(own, "//toolchains/python")
    assert (Path(python.home) / "bin/python3").exists()
    assert all(Path(mount).is_dir() for mount in python.mounts)
    names = {item["name"] for item in json.loads(python.fingerprint)["distributions"]}
    assert {"torch", "triton", "numpy", "sympy"} <= names


def test_our_zig(own: Loader) -> None:
    zig = find(own, "//toolchains/zig")
    assert (Path(zig.home) / "zig").is_file()
    assert (
        json.loads(zig.fingerprint)["record"]
        == hash_record(next(Path(zig.home).parent.glob("ziglang-*.dist-info/RECORD"))).hash
    )
