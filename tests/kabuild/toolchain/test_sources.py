"""Where pinned files come from: as this machine's pip and apt are configured."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Iterator
from pathlib import Path

import pytest

from kabuild.base.errors import Reason, ToolchainError
from kabuild.toolchain.fetch.apt_sources import DEFAULT, Suite, apt_suites
from kabuild.toolchain.fetch.deb import DebSource
from kabuild.toolchain.fetch.http import Http
from kabuild.toolchain.fetch.pip_settings import DEFAULT_INDEX, PipSettings, pip_settings
from kabuild.toolchain.fetch.pypi import PypiSource
from kabuild.toolchain.fetch.simple_index import _from_json, project_files
from kabuild.toolchain.fetch.wheel_name import WheelName
from kabuild.toolchain.lock import LockedFile
from tests.testkit.fileserver import FileServer, serving

X86 = "linux-x86_64"
STANZAS = """\
Package: other
Version: 1
Filename: pool/other.deb

Package: half-dev
Version: 1-2
Description: a
 Version: 9
Filename: pool/half_1-2.deb
Size: 7
SHA256: {digest}

Package: half-dev
Version: 1-3
Filename: pool/half_1-3.deb
Size: 8
SHA256: {digest}
""".format(digest="0" * 64)


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serving() as server:
        yield server


def pypi(server: FileServer, *more: str) -> PypiSource:
    return PypiSource(PipSettings((*more, f"{server.url}/simple")))


def test_the_wheel_for_a_machine(server: FileServer) -> None:
    for tag in ("manylinux2014_x86_64", "manylinux2014_aarch64", "win_amd64"):
        server.serve_project("a-b", f"a_b-1.0-py3-none-{tag}.whl", tag.encode())
    server.serve_project("a-b", "a_b-1.0.tar.gz", b"source")

    source = pypi(server)
    found = [source.find("A.b==1.0", machine) for machine in (X86, "linux-aarch64")]

    assert [file.name.partition("2014_")[2] for file in found] == ["x86_64.whl", "aarch64.whl"]
    assert len([p for _, p, _ in server.requests if p.startswith("/simple")]) == 1


def test_yanked_and_foreign_files_are_left_out(server: FileServer) -> None:
    server.files["/simple/a/"] = (
        b'<a href="a-1-py3-none-any.whl" data-yanked="broken">a-1-py3-none-any.whl</a>'
        b'<a href="b-1-py3-none-any.whl">b-1-py3-none-any.whl</a>'
    )

    with pytest.raises(ToolchainError, match="no wheel of a 1"):
        pypi(server).find("a==1", X86)


def test_no_wheel_for_a_machine_names_what_there_is(server: FileServer) -> None:
    server.serve_project("a", "a-1-py3-none-win_amd64.whl", b"")

    with pytest.raises(ToolchainError, match="is for linux-x86_64") as caught:
        pypi(server).find("a==1", X86)
    assert "a-1-py3-none-win_amd64.whl" in caught.value.hint
    assert "asked" not in caught.value.hint


@pytest.mark.parametrize("wanted", ["a==1", "a==2"])
def test_indexes_that_might_have_had_it_are_named(server: FileServer, wanted: str) -> None:
    server.serve_project("a", "a-1-py3-none-win_amd64.whl", b"")

    with pytest.raises(ToolchainError, match="no wheel") as caught:
        pypi(server, "http://127.0.0.1:1/simple").find(wanted, X86)

    refused = "could not be reached: http://127.0.0.1:1/simple: Connection refused"
    assert refused in caught.value.hint


def test_a_second_index_is_asked_when_the_first_has_it_not(server: FileServer) -> None:
    server.serve_project("a", "a-1-py3-none-any.whl", b"data")
    source = pypi(server, f"{server.url}/empty")

    file = source.find("a==1", X86)

    assert [*source.urls(file)] == [f"{server.url}/files/a-1-py3-none-any.whl"]


def test_an_index_that_cannot_be_asked_is_named_without_its_password() -> None:
    source = PypiSource(PipSettings(("http://user:secret@127.0.0.1:1/simple",)))

    with pytest.raises(ToolchainError) as caught:
        source.find("a==1", X86)

    assert caught.value.reason is Reason.FETCH_FAILED
    assert "http://127.0.0.1:1/simple: Connection refused" in caught.value.hint
    assert "secret" not in str(caught.value)


def test_both_forms_of_a_simple_index(tmp_path: Path) -> None:
    page = tmp_path / "a" / "index.html"
    page.parent.mkdir()
    page.write_text(f'<a href="../f/a%2B1.whl#sha256={"0" * 64}">a</a><a name="no-link">b</a>')

    (file,) = project_files(Http(), tmp_path.as_uri(), "a")

    assert (file.name, file.sha256) == ("a+1.whl", "0" * 64)
    assert file.url == f"{tmp_path.as_uri()}/f/a%2B1.whl"


def test_json_indexes() -> None:
    data = {"files": [{"filename": "a", "url": "x/a", "hashes": {"sha256": "1"}, "size": 3}]}
    (file,) = _from_json(json.dumps(data).encode(), "https://i/simple/a/")

    assert (file.url, file.sha256, file.size) == ("https://i/simple/a/x/a", "1", 3)
    for bad in (b"[]", b'{"files": [{}]}', b"{}"):
        with pytest.raises(ValueError, match="no list of files"):
            _from_json(bad, "https://i/")


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("a-1-py3-none-any.whl", True),
        ("a-1-py2.py3-none-manylinux2014_x86_64.whl", True),
        ("a-1-py3-none-manylinux2014_aarch64.whl", False),
        ("a-1-cp27-cp27m-manylinux1_x86_64.whl", False),
        ("a-1-py3-none-musllinux_1_1_x86_64.whl", False),
        ("a-1-cp310-abi3-manylinux_2_17_x86_64.whl", True),
        ("a-1-py3-none-manylinux_2_99_x86_64.whl", False),  # of a newer C library
        ("a-1-py3-none-manylinux_2_17_aarch64.whl", False),
        ("a-1-cp310-cp310-manylinux_2_17_x86_64.whl", False),
        ("a-1-cp399-abi3-manylinux_2_17_x86_64.whl", False),
    ],
)
def test_which_wheels_fit(name: str, fits: bool) -> None:
    wheel = WheelName.parse(name)

    assert wheel is not None
    assert wheel.fits(X86) is fits
    assert WheelName.parse("a-1.tar.gz") is None


@pytest.mark.parametrize(
    ("file", "pack"), [("Packages.xz", lzma.compress), ("Packages.gz", gzip.compress)]
)
def test_a_package_of_a_mirror(server: FileServer, file: str, pack: object) -> None:
    assert callable(pack)
    server.files[f"/d/dists/s/main/binary-amd64/{file}"] = pack(STANZAS.encode())
    source = DebSource((Suite(f"{server.url}/d", "s", ("main",)),))

    found = source.find("half-dev=1-2", X86)

    assert found == LockedFile("pool/half_1-2.deb", "half-dev=1-2", "0" * 64, 7)
    assert [*source.urls(found)] == [f"{server.url}/d/pool/half_1-2.deb"]
    with pytest.raises(ToolchainError, match="no mirror has half-dev 2") as caught:
        source.find("half-dev=2", X86)
    assert "available: 1-2, 1-3" in caught.value.hint


def test_apt_is_asked_where_its_mirrors_are(tmp_path: Path) -> None:
    (tmp_path / "sources.list").write_text(
        "# deb http://off s main\ndeb [signed-by=/k] http://m/d/ bookworm main contrib # x\n"
        "deb-src http://m/d bookworm main\n"
    )
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list.d" / "a.sources").write_text(
        "Types: deb\nURIs: http://n/d\nSuites: s t\nComponents: main\n\n"
        "Types: deb\nURIs: http://off\nSuites: s\nComponents: main\nEnabled: no\n"
    )

    suites = apt_suites({"KABUILD_APT_SOURCES": str(tmp_path)})

    assert suites == (
        Suite("http://m/d", "bookworm", ("main", "contrib")),
        Suite("http://n/d", "s", ("main",)),
        Suite("http://n/d", "t", ("main",)),
    )
    assert apt_suites({})[-1] == DEFAULT


def test_pip_is_asked_what_it_is_configured_with(tmp_path: Path) -> None:
    file = tmp_path / "pip.conf"
    file.write_text("[global]\nindex-url = https://mine/simple/\nextra_index_url = https://b\n")
    damaged = tmp_path / "damaged"
    damaged.write_text("index-url = nowhere")

    assert pip_settings({}, ()).indexes == (DEFAULT_INDEX,)
    assert pip_settings({}, (damaged, file)).indexes == ("https://mine/simple", "https://b")
    env = {"PIP_INDEX_URL": "https://c", "PIP_CERT": "/ca.pem"}
    assert pip_settings(env, (file,)) == PipSettings(("https://c", "https://b"), "/ca.pem")
    assert pip_settings({"PIP_NO_INDEX": "1"}, (file,)).indexes == ("https://b",)
