"""What ``--platform`` may say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kabuild.base.errors import Reason, UsageError
from kabuild.model.platform import ARCHITECTURES, PLATFORMS, Platform


@pytest.mark.parametrize(
    ("text", "name", "arch"),
    [
        ("cpu", "cpu", ""),
        ("cpu:x86_64", "cpu", "x86_64"),
        ("cuda", "cuda", ""),
        ("cuda:sm_90", "cuda", "sm_90"),
        ("cuda:sm_100a", "cuda", "sm_100a"),
        ("rocm:gfx90a", "rocm", "gfx90a"),
        ("rocm:gfx1201", "rocm", "gfx1201"),
    ],
)
def test_a_platform_is_a_name_and_perhaps_an_architecture(text: str, name: str, arch: str) -> None:
    platform = Platform.parse(text)

    assert (platform.name, platform.get("arch")) == (name, arch)
    assert str(platform) == text


def test_all_architectures_that_are_suggested_are_accepted() -> None:
    for name, known in ARCHITECTURES.items():
        assert [Platform.parse(f"{name}:{arch}").get("arch") for arch in known] == list(known)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("cud", "no platform 'cud'", "did you mean 'cuda'?"),
        ("metal", "no platform 'metal'", "platforms: cpu, cuda, rocm"),
        ("", "no platform ''", "platforms: cpu, cuda, rocm"),
        ("sm_90", "no platform 'sm_90'", "did you mean 'cuda:sm_90'?"),
        ("gfx942", "no platform 'gfx942'", "did you mean 'rocm:gfx942'?"),
        ("cuda:sm_9x", "'cuda:sm_9x' names no architecture", "did you mean 'sm_90'?"),
        ("cuda:90", "'cuda:90' names no architecture", "there are: sm_75, sm_80, "),
        ("cuda:sm_42", "'cuda:sm_42' names no architecture", "there are: sm_75, "),
        ("cuda:sm_9000", "'cuda:sm_9000' names no architecture", "did you mean 'sm_90'?"),
        ("cuda:sm_80a", "'cuda:sm_80a' names no architecture", "did you mean 'sm_80'?"),
        ("cuda:gfx942", "'cuda:gfx942' names no architecture", "there are: sm_75, sm_80, "),
        ("rocm:sm_90", "'rocm:sm_90' names no architecture", "there are: gfx906, "),
        ("rocm:gfx9999", "'rocm:gfx9999' names no architecture", "did you mean 'gfx9"),
        ("rocm:gfx9421x", "'rocm:gfx9421x' names no architecture", "did you mean 'gfx942'?"),
        ("cuda:", "'cuda:' names no architecture", "there are: sm_75, "),
        ("cpu:", "'cpu:' names no architecture", "--platform=cpu"),
        ("cuda:sm_90:0", "'cuda:sm_90:0' names no architecture", "did you mean 'sm_90'?"),
    ],
)
def test_what_is_no_platform_is_said_with_what_was_meant(
    text: str, message: str, hint: str
) -> None:
    with pytest.raises(UsageError) as caught:
        Platform.parse(text)

    assert caught.value.reason is Reason.UNKNOWN_PLATFORM
    assert message in caught.value.message
    assert caught.value.hint.startswith(hint)
    for name, known in ARCHITECTURES.items():
        if text.startswith(f"{name}:"):
            assert caught.value.hint.endswith(f"there are: {', '.join(known)}")


@given(st.text())
def test_any_text_is_a_platform_or_a_usage_error(text: str) -> None:
    try:
        platform = Platform.parse(text)
    except UsageError:
        return
    assert platform.name in PLATFORMS
