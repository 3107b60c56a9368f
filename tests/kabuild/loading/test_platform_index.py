"""What ``--platform`` may say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kabuild.base.errors import Reason, UsageError
from kabuild.loading.platform_index import PlatformIndex

SHIPPED = PlatformIndex.of(None)
ARCHITECTURES = {name: SHIPPED.spec(name).architectures for name in ("cuda", "rocm")}


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
    platform = SHIPPED.parse(text)

    assert (platform.name, platform.get("arch")) == (name, arch)
    assert str(platform) == text


def test_all_architectures_that_are_suggested_are_accepted() -> None:
    for name, known in ARCHITECTURES.items():
        assert [SHIPPED.parse(f"{name}:{arch}").get("arch") for arch in known] == list(known)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("cud", "unknown platform 'cud'", "did you mean 'cuda'?"),
        ("xpu", "unknown platform 'xpu'", "platforms: cpu, cuda, rocm"),
        ("gpu", "unknown platform 'gpu'", "platforms: cpu, cuda, rocm"),
        ("metal", "unknown platform 'metal'", "platforms: cpu, cuda, rocm"),
        ("", "unknown platform ''", "platforms: cpu, cuda, rocm"),
        ("sm_90", "unknown platform 'sm_90'", "did you mean 'cuda:sm_90'?"),
        ("gfx942", "unknown platform 'gfx942'", "did you mean 'rocm:gfx942'?"),
        ("cuda:sm_9x", "unknown cuda architecture 'sm_9x'", "did you mean 'sm_90'?"),
        ("cuda:90", "unknown cuda architecture '90'", "known: sm_75, sm_80, "),
        ("cuda:sm_42", "unknown cuda architecture 'sm_42'", "known: sm_75, "),
        ("cuda:sm_9000", "unknown cuda architecture 'sm_9000'", "did you mean 'sm_90'?"),
        ("cuda:sm_80a", "unknown cuda architecture 'sm_80a'", "did you mean 'sm_80'?"),
        ("cuda:gfx942", "unknown cuda architecture 'gfx942'", "known: sm_75, sm_80, "),
        ("rocm:sm_90", "unknown rocm architecture 'sm_90'", "known: gfx906, "),
        ("rocm:gfx9999", "unknown rocm architecture 'gfx9999'", "did you mean 'gfx9"),
        ("rocm:gfx9421x", "unknown rocm architecture 'gfx9421x'", "did you mean 'gfx942'?"),
        ("cuda:", "unknown cuda architecture ''", "known: sm_75, "),
        ("cpu:", "unknown cpu architecture ''", "--platform=cpu"),
        ("cuda:sm_90:0", "unknown cuda architecture 'sm_90:0'", "did you mean 'sm_90'?"),
    ],
)
def test_what_is_no_platform_is_said_with_what_was_meant(
    text: str, message: str, hint: str
) -> None:
    with pytest.raises(UsageError) as caught:
        SHIPPED.parse(text)

    assert caught.value.reason is Reason.UNKNOWN_PLATFORM
    assert message in caught.value.message
    assert caught.value.hint.startswith(hint)
    for name, known in ARCHITECTURES.items():
        if text.startswith(f"{name}:"):
            assert caught.value.hint.endswith(f"known: {', '.join(known)}")


@given(st.text())
def test_any_text_is_a_platform_or_a_usage_error(text: str) -> None:
    try:
        platform = SHIPPED.parse(text)
    except UsageError:
        return
    assert platform.name in SHIPPED.names()
