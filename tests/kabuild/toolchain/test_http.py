"""URLs that people misspell."""

from __future__ import annotations

import pytest

from kabuild.base.errors import ToolchainError
from kabuild.toolchain.fetch.http import FAILURES, Http, shown
from kabuild.toolchain.fetch.pip_settings import PipSettings
from kabuild.toolchain.fetch.pypi import PypiSource

MALFORMED = [
    "http://127.0.0.1:br\ufffdp1/simple",
    "http://127.0.0.1:99999999/simple",
    "http://[::1/simple",
    "http://host name/simple",
    "http://127.0.0.1:9/a b",
    "http://127.0.0.1:9/\ufffd",
    "http://" + "a" * 300 + "/simple",
    "http:///simple",
    "gopher://127.0.0.1/",
    "nothing",
]


@pytest.mark.parametrize("url", MALFORMED)
def test_a_malformed_url_is_a_failure(url: str) -> None:
    with pytest.raises(FAILURES):
        Http().open(url)


@pytest.mark.parametrize("url", MALFORMED)
def test_an_index_with_a_malformed_url_is_one_error(url: str) -> None:
    with pytest.raises(ToolchainError) as raised:
        PypiSource(PipSettings((url,))).find("toml==1.0", "linux-x86_64")

    assert raised.value.message


def test_what_is_shown_has_no_password_however_malformed() -> None:
    assert shown("http://me:secret@host/a") == "http://host/a"
    assert "secret" not in shown("http://me:secret@[::1/a")
