"""An agent's declaration, checked and in the form that its session reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kabuild.rule import AttributeProblem, suggest

PLACEHOLDERS = (
    *("workspace", "home", "files", "prompt", "prompt_file", "kernel", "brief", "python", "cli"),
    *("model", "seconds", "turns", "tokens", "dollars", "service", "proxy", "trial", "seed"),
    "journal",
)
"""The placeholders ``{NAME}`` in ``command``, ``env``, ``service`` and ``version_command``."""

ADAPTERS = ("plain", "claude_code", "codex", "cursor", "mini_swe", "evolve")
"""kabuild's adapters; ``tools/adapters`` has a module for each."""

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HOST = re.compile(r"([A-Za-z0-9.-]+):(\d{1,5})")
_OWN_FILE = re.compile(r"\{files\}/([\w./@+-]+)")
_MOST_PORT = 65535
_OURS = ("PATH", "HOME", "TMPDIR")
_COMMANDS = ("command", "service", "version_command")


@dataclass(frozen=True)
class Budget:
    """The range of one number in a declaration.

    A number beyond ``most`` was probably meant in another unit. Limits do not depend on this
    machine, since a declaration must load everywhere.

    Attributes:
        unit: of the number.
        least, most: the range, both included.
        example: shown to users who assumed another unit.
    """

    unit: str
    least: float
    most: int
    example: str

    def check(self, value: float) -> None:
        """Refuse an implausible number. Raises AttributeProblem."""
        if not self.least <= value <= self.most:
            raise AttributeProblem(
                f"found {value}, expected {self.least:g} to {self.most:_} {self.unit}",
                hint=f"it is in {self.unit}: {self.example}",
            )


BUDGETS: Mapping[str, Budget] = {
    "seconds": Budget("seconds", 0.1, 7 * 86_400, "3600 for an hour; a week is the most"),
    "turns": Budget("turns", 0, 1_000_000, "0 for any number of them"),
    "tokens": Budget("tokens", 0, 10_000_000_000, "3_000_000 for 3 million, 0 for any number"),
    "dollars": Budget("dollars", 0, 100_000, "20.0 for 20 dollars, 0 for any amount"),
    "memory": Budget("MiB", 64, 1_048_576, "8192 for 8 GiB; 1 TiB is the most"),
}
"""By attribute. The most turns are one a second for a week."""


def check_agent(attrs: Mapping[str, Any]) -> None:
    """Refuse an inconsistent declaration. Raises AttributeProblem."""
    if (attrs["replays"] is None) == (not attrs["command"]):
        raise AttributeProblem(
            "an agent either replays a solution or runs a command",
            ("command",) if attrs["command"] else (),
            'write replays = "expert" or command = ["python3", "{files}/agent.py"]',
        )
    replays = attrs["replays"]
    if replays and not all(map(_is_name, replays.split("/"))):
        problem = f"{replays!r} is not a directory below a task's solutions"
        raise AttributeProblem(problem, ("replays",), 'such as "expert"')
    for name in _COMMANDS:
        if attrs[name] and not attrs[name][0]:
            raise AttributeProblem("the program has no name", (name, 0))
    for path, text in _templates(attrs):
        _check_template(path, text, attrs)
        _check_own_files(path, text, attrs)
    for name in (*attrs["env"], *attrs["secrets"]):
        _check_variable(name, attrs)
    if attrs["prompt_by"] == "argument" and not any("{prompt}" in a for a in attrs["command"]):
        raise AttributeProblem("no argument of the command is {prompt}", ("prompt_by",))
    _check_network(attrs)
    _check_adapter(attrs)
    if attrs["version"] and not attrs["version_command"]:
        raise AttributeProblem("'version' needs a 'version_command'", ("version",))


def _is_name(part: str) -> bool:
    return part.isprintable() and part not in {"", ".", ".."}


def definition(attrs: Mapping[str, Any], cli: str) -> dict[str, Any]:
    """The agent's part of the session's ``agent.json``; ``cli`` is a path."""
    names = ("command", "service", "version_command", "secrets", "hosts")
    plain = ("prompt_by", "model", "network", "seconds", "turns", "tokens", "dollars")
    return {
        **{name: list(attrs[name]) for name in names},
        **{name: attrs[name] for name in (*plain, "version", "adapter", "resumes")},
        "env": dict(attrs["env"]),
        "cli": cli,
    }


def _check_network(attrs: Mapping[str, Any]) -> None:
    if bool(attrs["hosts"]) != (attrs["network"] == "proxy"):
        raise AttributeProblem(
            "'hosts' and network = \"proxy\" belong together",
            ("hosts",) if attrs["hosts"] else ("network",),
        )
    for index, host in enumerate(attrs["hosts"]):
        found = _HOST.fullmatch(host)
        if not found or not 0 < int(found[2]) <= _MOST_PORT:
            hint = "such as api.example.com:443, without https://"
            raise AttributeProblem(f"'{host}' is not HOST:PORT", ("hosts", index), hint)
    if attrs["service"] and attrs["network"] not in {"loopback", "proxy"}:
        raise AttributeProblem("a service needs the agent's own loopback", ("network",))


def _check_adapter(attrs: Mapping[str, Any]) -> None:
    own = attrs["files_of"] or _has_file(attrs, f"{attrs['adapter']}.py")
    if attrs["adapter"] not in ADAPTERS and not own:
        hint = suggest(attrs["adapter"], ADAPTERS) or f"built-in adapters: {', '.join(ADAPTERS)}"
        problem = f"no adapter '{attrs['adapter']}', and no {attrs['adapter']}.py in 'files'"
        raise AttributeProblem(problem, ("adapter",), hint)


def _has_file(attrs: Mapping[str, Any], name: str) -> bool:
    return any(f"/{source.path}".endswith(f"/{name}") for source in attrs["files"])


def _templates(attrs: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    for name in _COMMANDS:
        for index, text in enumerate(attrs[name]):
            yield (name, index), text
    for name, text in attrs["env"].items():
        yield ("env", name), text


def _check_template(path: tuple[str | int, ...], text: Any, attrs: Mapping[str, Any]) -> None:
    if not isinstance(text, str):
        hint = f'write "{str(text).lower() if isinstance(text, bool) else text}"'
        raise AttributeProblem(f"{text!r} is not a string", path, hint)
    for name in _PLACEHOLDER.findall(text):
        if name not in PLACEHOLDERS:
            hint = suggest(name, PLACEHOLDERS) or f"known: {', '.join(PLACEHOLDERS)}"
            raise AttributeProblem(f"no placeholder '{{{name}}}'", path, hint)
        if name == "journal" and not attrs["resumes"]:
            raise AttributeProblem("{journal} needs resumes = true", path)
        if name == "cli" and attrs["cli"] is None:
            hint = 'cli = "//package:toolchain", whose role is agent-cli'
            raise AttributeProblem("{cli} needs a toolchain, and none is named", path, hint)


def _check_own_files(path: tuple[str | int, ...], text: str, attrs: Mapping[str, Any]) -> None:
    """Check that the command uses only files in ``files``: the agent does not see its package."""
    known = [f"/{source.path}" for source in attrs["files"]]
    for name in () if attrs["files_of"] else _OWN_FILE.findall(text):
        wanted = name.rstrip("./")
        if wanted and not any(one.endswith(f"/{wanted}") or f"/{wanted}/" in one for one in known):
            raise AttributeProblem(
                f"'{{files}}/{wanted}' is not one of its files",
                path,
                f'write files = ["{wanted}"], which is hashed and which the agent sees',
            )


def _check_variable(name: str, attrs: Mapping[str, Any]) -> None:
    path = ("env", name) if name in attrs["env"] else ("secrets", attrs["secrets"].index(name))
    if not _VARIABLE.fullmatch(name):
        hint = "give the name of a variable; its value comes from your environment"
        hint = hint if path[0] == "secrets" else ""
        raise AttributeProblem(f"'{name}' is not a variable name", path, hint)
    if name in _OURS or name.startswith("KABUILD_"):
        raise AttributeProblem(f"'{name}' is set by kabuild", path)
    if name in attrs["env"] and name in attrs["secrets"]:
        raise AttributeProblem(f"'{name}' is both in 'env' and a secret", path)
