"""``kabuild model`` by the real program, on a model of a few operators."""

from __future__ import annotations

import pytest

from tests.testkit.cli import CliWorkspace, Ran

MODEL = '''
import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(16))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Net(nn.Module):
    """<b>Two</b> layers."""

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(Norm() for _ in range(2))
        self.layers = nn.ModuleList(nn.Linear(16, 16, bias=False) for _ in range(2))

    def forward(self, x):
        for norm, layer in zip(self.norms, self.layers):
            x = layer(norm(x))
        return x


def build():
    return Net().eval()


def inputs(generator):
    return (torch.randn(8, 16, generator=generator),)
'''


@pytest.fixture(scope="module")
def place(kept_workspace: CliWorkspace) -> CliWorkspace:
    kept_workspace.write("net.py", MODEL)
    return kept_workspace


@pytest.fixture(scope="module")
def profiled(place: CliWorkspace) -> Ran:
    return place.run("model", "profile", "net.py", "--json")


def test_a_profile_has_each_part_once(profiled: Ran) -> None:
    found = profiled.json
    parts = {part["name"]: part for part in found["parts"]}

    assert parts.keys() == {"norm", "linear"}
    assert parts["norm"]["operators"] == ["pow", "mean", "add", "rsqrt", "mul", "mul"]
    assert parts["norm"]["kind"] == "group"
    assert parts["norm"]["shapes"] == [{"inputs": [[8, 16], [16]], "calls": 2}]
    assert parts["norm"]["modules"] == ["norms.0", "norms.1"]
    assert parts["linear"]["flops"] == 2 * 2 * 8 * 16 * 16
    assert parts["linear"]["bytes"] == 2 * 4 * (8 * 16 + 16 * 16 + 8 * 16)
    assert sum(part["share"] for part in parts.values()) == pytest.approx(1)
    assert all(part["gain"] >= 1 and 0 < part["roof_share"] <= 1 for part in parts.values())
    assert found["flame"]["seconds"] == pytest.approx(found["graph_seconds"])


def test_a_profile_is_cached_and_shown(place: CliWorkspace, profiled: Ran) -> None:
    ran = place.run("model", "profile", "net.py", "-o", "page.html")

    assert ran.code == 0
    assert not ran.executed
    rows = [line.split() for line in ran.out.splitlines()]
    assert [row[:2] for row in rows if row[:1] in (["norm"], ["linear"])] == [
        [part["name"], str(part["calls"])] for part in profiled.json["parts"]
    ]
    page = (place.root / "page.html").read_text()
    assert "norms.0 Norm" in page
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")


def test_a_model_that_ends_its_process_is_one_error(place: CliWorkspace) -> None:
    place.write("bad.py", "import os\nos._exit(0)")

    ran = place.run("model", "profile", "bad.py")

    assert ran.code == 1
    assert "bad.py: the model cannot be run: " in ran.err
    assert "Traceback" not in ran.err


def test_facts_of_another_form_are_refused(place: CliWorkspace) -> None:
    """A hostile file may write the answer itself, and end the process."""
    forged = '{"schema": 1, "device": "cpu", "parts": [], "eager_seconds": -1}'
    place.write(
        "forged.py",
        f"import os, pathlib\npathlib.Path('out/facts.json').write_text('{forged}')\nos._exit(0)",
    )

    ran = place.run("model", "profile", "forged.py")

    assert ran.code == 1
    assert "forged.py: what was written about it cannot be read" in ran.err


def test_a_path_that_is_no_model_file_is_a_usage_error(place: CliWorkspace) -> None:
    missing = place.run("model", "profile", "none.py")
    assert (missing.code, "none.py" in missing.err) == (2, True)
    place.write("1.py", MODEL)
    assert "cannot name a model" in place.run("model", "profile", "1.py").err
