"""A home directory is found whatever the environment says."""

from __future__ import annotations

import pwd
from pathlib import Path

import pytest

from kabuild.base.seal import data_home
from kabuild.base.user_dirs import home_directory

OWN = Path(pwd.getpwuid(0).pw_dir)


@pytest.mark.parametrize("home", ["~", "~nobody-here", "", "relative", "../up"])
def test_a_home_that_is_not_absolute_is_not_used(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.getuid", lambda: 0)

    assert home_directory({"HOME": home}) == OWN
    assert data_home({"HOME": home}) == OWN / ".local/share/kabuild"


def test_a_user_whom_the_system_does_not_know_has_the_root(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.getuid", lambda: 54_321_987)

    assert home_directory({}) == Path("/")
    assert home_directory({"HOME": "/mine"}) == Path("/mine")
