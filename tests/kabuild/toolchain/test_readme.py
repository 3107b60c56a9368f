"""What ``toolchains/README.md`` shows can be declared, and it leaves nothing out."""

from __future__ import annotations

import re
from pathlib import Path

from kabuild.loading.toolchain_rule import PINS, TOOLCHAIN
from kabuild.toolchain import Declaration
from tests.kabuild.conftest import Project

README = (Path(__file__).parents[3] / "toolchains/README.md").read_text()


def test_every_kind_is_shown_as_it_can_be_declared(project: Project) -> None:
    (shown,) = [
        block for block in re.findall(r"```toml\n(.*?)```", README, re.DOTALL) if "role" in block
    ]
    project.write("t/BUILD.toml", shown.replace("9f2c...", "9f2c" * 16))

    targets = project.loader().package("t").targets.values()

    assert {Declaration.of(target).kind for target in targets} == {*PINS}


def test_every_attribute_is_described() -> None:
    described = {
        name
        for row in re.findall(r"^\| (`.*?) \|", README, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }

    assert {*TOOLCHAIN.attrs} - {*PINS} <= described
