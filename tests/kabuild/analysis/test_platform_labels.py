"""Labels with ``{platform}``: defaults, and those that targets declare."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from kabuild.analysis import Analysis
from kabuild.base.errors import AnalysisError, Position, Reason
from kabuild.model.label import Label

if TYPE_CHECKING:
    from tests.kabuild.conftest import Project

Analyse = Callable[..., Analysis]


@pytest.mark.parametrize(
    ("platform", "reason", "hint"),
    [
        ("cuda", Reason.NO_TOOLCHAIN, "platforms that have it: cpu, rocm"),
        ("cpuu", Reason.UNKNOWN_PLATFORM, "did you mean 'cpu'?"),
        ("a b!", Reason.UNKNOWN_PLATFORM, "platforms that have it: cpu, rocm"),
    ],
)
def test_platforms_that_a_default_label_does_not_have(
    project: Project, analyse: Analyse, platform: str, reason: Reason, hint: str
) -> None:
    project.task("a")
    for name in ("cuda", "rocm"):
        project.write(f"toolchains/platforms/{name}/platform.toml", 'doc = "One."\n')
    with pytest.raises(AnalysisError, match=r"//a needs //toolchains/cc:\{platform\}") as caught:
        analyse("//a", platform=platform)
    assert caught.value.reason is reason
    assert caught.value.hint == hint
    assert caught.value.position == Position("a/BUILD.toml", 1)


def test_default_labels_follow_the_platform(project: Project, analyse: Analyse) -> None:
    project.task("a")
    assert Label("toolchains/cc", "cpu") in analyse("//a").targets
    analysis = analyse("//a", platform="rocm")
    assert Label("toolchains/cc", "cpu") not in analysis.targets
    target = analysis.targets[Label("a", "a")].target
    assert target.attrs["compiler"] == Label("toolchains/cc", "rocm")


def test_declared_labels_follow_the_platform(project: Project, analyse: Analyse) -> None:
    """And have their own line, where the platform has no such target."""
    project.task("a", 'deps = [\n  "//toolchains/cc:cpu",\n  "//toolchains/cc:{platform}",\n]')

    target = analyse("//a", platform="rocm").targets[Label("a", "a")].target
    names = (Label("toolchains/cc", "cpu"), Label("toolchains/cc", "rocm"))
    assert target.attrs["deps"] == names

    project.write("toolchains/platforms/cuda/platform.toml", 'doc = "One."\n')
    project.task("b", 'deps = [\n  "//toolchains/cc:cpu",\n  "//toolchains/cc:a_{platform}",\n]')
    with pytest.raises(AnalysisError, match="which does not exist for platform 'cpu'") as caught:
        analyse("//b")
    assert caught.value.position == Position("b/BUILD.toml", 6)
    assert caught.value.hint == "platforms that have it: none"
