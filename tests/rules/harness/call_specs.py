"""The specs of tasks with a call, and what the gate of correctness says of them."""

# mypy: allow-untyped-defs, allow-untyped-calls

import json
import textwrap

from base.spec import parse_spec
from call_forms import FORMS
from correctness import gate

from rules.call.rule import _check, boundary_json
from rules.harness.configs import visible_configs
from rules.harness.expressions import read_ranges
from rules.harness.signature import read_signature


def attributes(form):
    """The attributes of a task, as they are when it has been loaded."""
    usual = {"dtypes": ("f32",), "entry": None, "member": ""}
    usual |= {"baseline": "Model", "state_by": "name"}
    names = ("scalars", "state", "layout", "compare", "tolerance", "limits")
    gates = ("correctness", "perf", "unseen", "platform_configs")
    tables: dict[str, object] = {name: {} for name in (*names, *gates)}
    lists = {"where": (), "updates": (), "distributions": (), "modules": (), "accepts": ("python",)}
    return {**usual, **tables, **lists, "flops": "0", **form}


def spec_of(folder, form, solution):
    """The spec of a form, as the rule writes it, with its files in ``folder``."""
    attrs = attributes(form)
    _check(attrs)
    signature = read_signature(attrs)
    head = "import torch\n"
    folder.mkdir(exist_ok=True)
    (folder / "reference.py").write_text(head + textwrap.dedent(form["reference"]))
    right = head + textwrap.dedent(form["right"])
    (folder / "baseline.py").write_text(right)
    (folder / "candidate.py").write_text(right + textwrap.dedent(solution))
    boundary = boundary_json(attrs)
    program = {
        "abi": "call",
        "entry": boundary["names"][0],
        "call": json.dumps(boundary, sort_keys=True),
    }
    if form.get("adapter"):
        (folder / "adapter.py").write_text(textwrap.dedent(form["adapter"]))
        program["adapter"] = str(folder / "adapter.py")
    return {
        "schema": 1,
        "gate": "correctness",
        "platform": "cpu",
        "family": "call",
        "candidate": {**program, "path": str(folder / "candidate.py")},
        "baseline": {**program, "path": str(folder / "baseline.py")},
        "reference": str(folder / "reference.py"),
        "signature": signature.to_json(),
        "space": {
            "dims": {name: list(bounds) for name, bounds in read_ranges(attrs["dims"]).items()},
            "dtypes": ["f32"],
            "where": list(attrs["where"]),
        },
        "configs": [c.to_json() for c in visible_configs(attrs, signature, "cpu")],
        "salt": "calls",
        "policy": {"distributions": ["default", "negative"], "edges": 2},
    }


def judged(launcher, folder, form, solution=""):
    """The verdict on a form's right solution, followed by ``solution``."""
    return gate.run(parse_spec(spec_of(folder, FORMS[form], solution)), launcher)
