"""A command offers the flags that it heeds: each that is offered is read, of the table below."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import FrameType
from typing import Any

import click
import pytest
from click.testing import CliRunner

from kabuild.cli.options import Options
from kabuild.cli.program import COMMANDS, cli
from kabuild.cli.remote_flags import ServerFlags
from kabuild.loading.request import Request
from tests.testkit.cli import CliWorkspace
from tests.testkit.generated import generate

TASK, BROKEN = "//tasks/family0/t0", "//tasks/family0/t1"
RUNS: dict[str, tuple[tuple[str, ...], ...]] = {
    "test": ((TASK, "--explain=e", "--events=v", "--summary=s"), (TASK, "--json")),
    "build": ((TASK, "--explain=e", "--events=v", "--summary=s"), (TASK, "--json")),
    "why": ((TASK,),),
    "aquery": ((TASK, "--json"),),
    "analyze": ((BROKEN, "--json", "--arch=sm_90"),),
    "bench": ((BROKEN, "--json"),),
    "report": ((TASK, "--format=html", "-o", "r.html"),),
    "compare": (("none", "none", TASK),),
    "publish": ((TASK, "-o", "b.kab"),),
    "site": (("b.kab", "-o", "site"),),
    "records": (("b.kab", "--file=r.json", "--update"),),
    "validate": ((TASK,),),
    "replay": (("b.kab",),),
    "doctor": ((), ("--json", "--remote_cache=grpc://127.0.0.1:1", "--remote_retries=0")),
    "worker config": (("systemd",), ("systemd", "-o", "units")),
    "fleet status": (("--json", "--remote_executor=grpc://127.0.0.1:1"),),
    "cache export": (("all.kcache", TASK),),
}
"""How each command with typed options is called, in this order; one publishes what one replays."""

ELSEWHERE = {"watch", "import", "model profile", "model extract", "model optimise", "model verify"}
"""Not called here. ``watch`` does not end by itself; its options are those of ``test`` but for how
one build ends. ``import`` runs a benchmark's own code, ``model`` a user's: test_import.py,
test_model.py and test_model_optimise.py do."""

COPIES = {"replace", "refine", "identity", "check_numbers", "__init__", "__eq__", "__hash__"}
"""Who reads a field to hand it on or to check it, which is no heeding."""


def leaves(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command that is no group, by its words."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for word in command.list_commands(context):
        found = command.get_command(context, word)
        assert found is not None
        yield from leaves(found, f"{name} {word}".strip())


ALL = dict(leaves(cli))


def options_of(command: click.Command) -> type[Options] | None:
    """The class of the options of a command; None where it takes them one by one."""
    function = inspect.unwrap(command.callback) if command.callback else None
    hint = inspect.get_annotations(function, eval_str=True).get("options") if function else None
    return hint if isinstance(hint, type) and issubclass(hint, Options) else None


TYPED = {name: options_of(command) for name, command in ALL.items()}


def test_the_table_has_all_commands_with_typed_options() -> None:
    assert {name for name, kind in TYPED.items() if kind} == RUNS.keys() | ELSEWHERE
    assert {name.split()[0] for name in ALL} == COMMANDS.keys()


class Reads:
    """Which fields of an object are read, by whomever does not merely hand them on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kind: type) -> None:
        self.fields: set[str] = set()
        names = {field.name for field in fields(kind)}
        plain: Any = kind.__getattribute__

        def spy(instance: Any, name: str) -> Any:
            caller: FrameType = sys._getframe(1)
            if name in names and caller.f_code.co_name not in COPIES:
                self.fields.add(name)
            return plain(instance, name)

        monkeypatch.setattr(kind, "__getattribute__", spy)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> CliWorkspace:
    root = tmp_path_factory.mktemp("heeded")
    generate(root / "work", 2, shared=1)
    (root / "work/tasks/family0/t1/kernel.hip").write_text("bad\n")
    rule = root / "work/rules/copied/rule.py"
    text = rule.read_text().replace("Gate, Role", "Gate, Role, When")
    last = '    Gate("score", role=Role.SCORE),\n'
    asked = '    Gate("counts", When.ON_REQUEST, Role.COUNTS),\n'
    judged = '    Gate("admission", When.VALIDATE),\n'
    rule.write_text(text.replace(last, f"{last}{asked}{judged}"))
    return CliWorkspace(root / "work", root / "store")


@pytest.mark.parametrize("name", RUNS)
def test_a_command_reads_every_flag_that_it_offers(
    place: CliWorkspace, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a flag that becomes a field of the request, the field has to be read by who builds."""
    monkeypatch.chdir(place.root)
    monkeypatch.setenv("KABUILD_CACHE", str(place.store))
    kind = TYPED[name]
    assert kind is not None
    asked, options = Reads(monkeypatch, Request), Reads(monkeypatch, kind)

    for arguments in RUNS[name]:
        done = CliRunner().invoke(cli, [*name.split(), *arguments])
        assert isinstance(done.exception, SystemExit | None), done.exception

    unread = {field.name for field in fields(kind)} - options.fields
    assert {flag for flag in unread if REQUESTED.get(flag, flag) not in asked.fields} == set()


REQUESTED = {
    "test_tag_filters": "tags",
    "unseen_salt_file": "salt_file",
    "sandbox": "hermetic",
    "sandbox_debug": "keep_sandboxes",
    "runs_per_test": "runs_per_gate",
    "cache_test_results": "read_cached_gates",
    "remote_accept_cached": "remote",
    "remote_upload_local_results": "remote",
    "remote_signing_key": "remote",
    "remote_jobs": "remote",
    **dict.fromkeys((field.name for field in fields(ServerFlags)), "remote"),
}
"""Flags by the field of the request that they become, where that is called otherwise."""


@pytest.mark.parametrize("name", [name for name, kind in TYPED.items() if kind is None])
def test_a_command_with_few_flags_uses_each_of_them(name: str) -> None:
    command = ALL[name]
    assert command.callback is not None
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(command.callback)))
    used = {
        node.id
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    offered = {param.name for param in command.params if param.expose_value}

    assert offered <= used


def test_a_flag_that_is_not_read_is_found(
    place: CliWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ``why`` would be with the flags of a run: nothing of it reads how many jobs."""
    monkeypatch.chdir(place.root)
    monkeypatch.setenv("KABUILD_CACHE", str(place.store))
    asked = Reads(monkeypatch, Request)

    assert CliRunner().invoke(cli, ["why", TASK]).exit_code == 0

    assert not {"jobs", "keep_going", "keep_sandboxes", "runs_per_gate"} & asked.fields
    assert {"platform", "trials", "hermetic", "policy"} <= asked.fields


def test_what_has_no_effect_together_is_refused(place: CliWorkspace) -> None:
    one = place.run("report", TASK, "--agents=none", "--solution=WORKSPACE.toml")
    other = place.run("report", TASK, "--agents=none", "--agent=none")

    empty = place.run("report", TASK, "--agents=,")

    assert (one.code, other.code, empty.code) == (2, 2, 2)
    assert "--agents and --solution exclude each other" in one.err
    assert "--agents and --agent exclude each other" in other.err
    assert "--agents names no agent: ','" in empty.err


@pytest.mark.parametrize("command", ["test", "build", "why", "bench", "report", "watch"])
def test_an_agent_and_a_solution_are_no_request(place: CliWorkspace, command: str) -> None:
    ran = place.run(command, TASK, "--agent=expert", "--solution=WORKSPACE.toml")

    assert ran.code == 2
    assert "--agent=expert and --solution=WORKSPACE.toml exclude each other" in ran.err


def test_of_an_agent_and_a_solution_the_command_line_wins(
    place: CliWorkspace, tmp_path: Path
) -> None:
    mine = place.copy(tmp_path)
    file = mine.root / "WORKSPACE.toml"
    configs = '[config.a]\nagent = "none"\n[config.s]\nsolution = "absent.hip"\n'
    file.write_text(f"{file.read_text()}\n{configs}")

    solution = mine.run("test", TASK, "--config=a", "--solution=absent.hip")
    agent = mine.run("test", TASK, "--config=s", "--agent=none")

    assert (solution.code, "no file or directory 'absent.hip'" in solution.err) == (2, True)
    assert agent.code == 0, agent.err
    assert mine.run("test", TASK, "--config=a", "--config=s").code == 2


def test_a_config_for_test_serves_commands_that_have_fewer_flags(
    place: CliWorkspace, tmp_path: Path
) -> None:
    mine = place.copy(tmp_path)
    file = mine.root / "WORKSPACE.toml"
    file.write_text(f"{file.read_text()}\n[config.ci]\njobs = 1\nruns_per_test = 2\n")

    assert mine.run("why", TASK, "--config=ci").code == 0
    assert mine.run("query", TASK).code == 0
