"""Directories that can stand for a toolchain, and those that only lead to one."""

from __future__ import annotations

from pathlib import Path

import pytest

from kabuild.base.errors import LoadError, Position
from kabuild.loading import Loader, load_workspace
from kabuild.loading.platform_index import PlatformIndex
from kabuild.model.label import Label
from kabuild.toolchain import Declaration, LocalTree
from kabuild.toolchain.completeness import installation, lacking, not_whole
from tests.kabuild.conftest import Project

ROOT = Path(__file__).parents[3]
NEEDED = ("bin/cc", "lib/cc1|lib64/cc1")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An installation that is whole."""
    home = tmp_path / "opt" / "cc-13"
    for path in ("bin/cc", "lib64/cc1"):
        (home / path).parent.mkdir(parents=True)
        (home / path).write_bytes(b"\x7fELF")
    return home


def wrapper(directory: Path, text: str) -> Path:
    """A script ``bin/cc`` in a directory."""
    (directory / "bin").mkdir(parents=True)
    (directory / "bin" / "cc").write_text(text)
    return directory / "bin" / "cc"


def test_what_is_lacking(home: Path) -> None:
    assert lacking(home, NEEDED) == []
    assert lacking(home, (*NEEDED, "include/cc.h")) == ["include/cc.h"]
    assert lacking(home.parent, NEEDED) == [*NEEDED]


def test_only_parts_that_count_are_looked_into(home: Path) -> None:
    assert lacking(home, NEEDED, ["bin", "lib64"]) == []
    assert lacking(home, NEEDED, ["bin/cc", "lib64/cc1"]) == []
    assert lacking(home, NEEDED, ["bin", "lib"]) == ["lib/cc1|lib64/cc1"]
    assert lacking(home, NEEDED, ["bi", "lib64"]) == ["bin/cc"]


def test_what_is_behind_links_counts_where_they_lead(home: Path) -> None:
    (home / "targets").mkdir()
    (home / "lib64").rename(home / "targets/lib")
    (home / "lib64").symlink_to("targets/lib")

    assert lacking(home, NEEDED, ["bin", "lib64"]) == []
    assert lacking(home, NEEDED, ["bin", "targets/lib/cc1"]) == []
    assert lacking(home, NEEDED, ["bin", "targets/li"]) == ["lib/cc1|lib64/cc1"]


def test_what_lies_outside_of_a_tree_is_not_in_it(home: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    (linked / "bin").mkdir(parents=True)
    (linked / "bin/cc").symlink_to(home / "bin/cc")
    (linked / "lib").symlink_to(home / "lib64")
    declaration = Declaration(
        Label("t", "cc"), "c", LocalTree(str(linked)), Position("BUILD"), requires=NEEDED
    )

    for parts in ([], ["bin", "lib"]):
        assert lacking(linked, NEEDED, parts) == [*NEEDED]
        said = not_whole(declaration, linked, NEEDED, parts)
        assert f"bin/cc leads out of it, to {home}/bin/cc: adopt its directory" in said
    assert "it lacks cc.h" in not_whole(declaration, linked, [*NEEDED, "cc.h"])
    assert installation(linked / "bin/cc", NEEDED) == home


def test_an_installation_is_found_by_its_own_program(home: Path) -> None:
    assert installation(home / "bin/cc", NEEDED) == home


def test_links_are_followed(home: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/cc").symlink_to(home / "bin/cc")
    assert installation(tmp_path / "bin/cc", NEEDED) == home

    (tmp_path / "opt/cc").symlink_to("cc-13")
    assert installation(tmp_path / "opt/cc/bin/cc", NEEDED) == tmp_path / "opt/cc"


@pytest.mark.parametrize(
    "text",
    [
        '#!/bin/sh\nexec {home}/bin/cc "$@"\n',
        '#!/bin/bash\n"{home}/bin/cc" "$@"; exit $?\n',
        '#!/bin/sh\nROOT=/nowhere\nexec {other} "$@"\n',
    ],
)
def test_scripts_that_call_it_are_followed(home: Path, tmp_path: Path, text: str) -> None:
    other = wrapper(tmp_path / "other", f"#!/bin/sh\nexec {home}/bin/cc\n")
    script = wrapper(tmp_path / "local", text.format(home=home, other=other))

    assert installation(script, NEEDED) == home


@pytest.mark.parametrize(
    "text",
    [
        "{home}/bin/cc\n",
        "#!/bin/sh\nexec {home}/bin/cc\n" + "#" * 5000,
        "#!/bin/sh\nexec {home}/bin/dd\n",
        "#!/bin/sh\nexec {script}\n",
        "",
    ],
    ids=["no script", "a long one", "another program", "itself", "empty"],
)
def test_what_leads_nowhere_is_no_installation(home: Path, tmp_path: Path, text: str) -> None:
    script = tmp_path / "local/bin/cc"
    wrapper(tmp_path / "local", text.format(home=home, script=script))

    assert installation(script, NEEDED) is None
    assert installation(tmp_path / "absent", NEEDED) is None


def test_scripts_that_call_each_other_end(tmp_path: Path) -> None:
    first = wrapper(tmp_path / "first", f"#!/bin/sh\nexec {tmp_path}/second/bin/cc\n")
    wrapper(tmp_path / "second", f"#!/bin/sh\nexec {first}\n")

    assert installation(first, NEEDED) is None


def test_what_doctor_offers_is_what_the_declaration_requires() -> None:
    """``pin`` refuses nothing for the lack of what ``doctor`` looked for."""
    target = Loader(load_workspace(ROOT)).target(Label.parse("//toolchains/cuda:nvcc"))
    required = {frozenset(item.split("|")) for item in Declaration.of(target).requires}
    (looked_for,) = PlatformIndex.of(None).spec("cuda").installations

    assert looked_for.program == "nvcc"
    assert {frozenset(item.split("|")) for item in looked_for.requires} == required


@pytest.mark.parametrize(
    ("pin", "message"),
    [
        ('local = "/a"\nrequires = ["b", "c|../d"]', "'../d' is not a path below the tree"),
        ('local = "/a"\nrequires = ["b|"]', "'' is not a path below the tree"),
        ('environment = ["x"]\nrequires = ["b"]', "'requires' belongs to 'local'"),
    ],
)
def test_what_cannot_be_required(project: Project, pin: str, message: str) -> None:
    project.write("t/BUILD.toml", f'[[toolchain]]\nname = "t"\nrole = "r"\n{pin}\n')

    with pytest.raises(LoadError) as caught:
        project.loader().target(Label("t", "t"))

    assert message in str(caught.value)
