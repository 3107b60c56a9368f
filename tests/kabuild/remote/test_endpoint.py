"""URLs of servers."""

from __future__ import annotations

import pytest

from kabuild.remote.endpoint import Endpoint


@pytest.mark.parametrize(
    ("url", "target", "instance", "secure"),
    [
        ("grpc://cache:8980", "cache:8980", "", False),
        ("grpc://cache:8980/", "cache:8980", "", False),
        ("grpc://cache:8980/a/b", "cache:8980", "a/b", False),
        ("grpcs://cache.example", "cache.example:443", "", True),
        ("grpcs://cache.example:1/x%20y", "cache.example:1", "x y", True),
        ("grpc://[::1]:8980/main", "[::1]:8980", "main", False),
        ("unix:/run/cache.sock", "unix:/run/cache.sock", "", False),
        ("unix:///run/cache.sock", "unix:/run/cache.sock", "", False),
    ],
)
def test_a_url_is_read(url: str, target: str, instance: str, secure: bool) -> None:
    endpoint = Endpoint.of(url)

    assert (endpoint.target, endpoint.instance, endpoint.secure) == (target, instance, secure)
    assert Endpoint.of(endpoint.shown).target == target


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("cache:8980", "expected grpc://HOST:PORT"),
        ("http://cache:8980", "expected grpc://HOST:PORT"),
        ("grpc://cache", "has no port"),
        ("grpc://:8980", "has no host"),
        ("grpc://", "has no host"),
        ("grpc://cache:0", "'0' is not a port"),
        ("grpc://cache:99999", "'99999' is not a port"),
        ("grpc://cache:port", "'port' is not a port"),
        ("grpc://me:secret@cache:1", "send tokens as headers"),
        ("grpc://cache:1?x=y", "send tokens as headers"),
        ("grpc://[::1:8980", "is not a URL"),
        ("unix:run/cache.sock", "absolute"),
    ],
)
def test_a_wrong_url_is_refused(url: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Endpoint.of(url)


def test_tokens_are_in_no_representation() -> None:
    endpoint = Endpoint("cache:1", headers=(("authorization", "Bearer abc"),), key=b"pem")

    assert "abc" not in repr(endpoint)
    assert "pem" not in repr(endpoint)
