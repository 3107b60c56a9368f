"""Analyses of toy workspaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from kabuild.analysis import Analysis, analyze
from kabuild.loading import Loader, expand
from kabuild.model.label import Label
from kabuild.model.options import Options
from kabuild.model.platform import Platform

if TYPE_CHECKING:
    from tests.kabuild.conftest import Project

Analyse = Callable[..., Analysis]


@pytest.fixture
def analyse(project: Project) -> Analyse:
    """Analyse patterns of the project: ``analyse("//a", platform="rocm")``."""

    def run(
        *patterns: str,
        platform: str = "cpu",
        agent: str = "//toolchains/agents:expert",
        loader: Loader | None = None,
        **more: object,
    ) -> Analysis:
        loader = loader or project.loader()
        options = Options(Platform(platform), Label.parse(agent))
        return analyze(loader, expand(loader, patterns), options, **more)  # type: ignore[arg-type]

    return run
