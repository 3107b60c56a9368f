"""``--config=NAME``: the flags of a table in WORKSPACE.toml as the defaults of a command's own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from kabuild.base.errors import Reason, UsageError
from kabuild.base.suggest import suggest
from kabuild.loading import find_workspace, load_workspace
from kabuild.loading.loader import Loader
from kabuild.loading.workspace import Workspace
from kabuild.model.gate import Pick, check_policy, choose


class _ConfigFlagError(UsageError):
    """A config sets an unknown flag, or gives a flag an invalid value."""

    def __init__(self, flag: str, message: str, hint: str) -> None:
        super().__init__(Reason.BAD_FLAG, message, hint=hint)
        self.flag = flag


def apply_config(ctx: click.Context, _: click.Parameter, names: tuple[str, ...]) -> None:
    """Make the flags of ``[config.NAME]`` the defaults; flags on the command line win."""
    if not names or ctx.resilient_parsing:
        return
    workspace = load_workspace(find_workspace(Path.cwd()))
    defaults: dict[str, Any] = {}
    for name in names:
        flags = workspace.config(name)
        try:
            defaults.update(_checked(ctx, name, flags))
            _check_names(workspace, flags)
        except _ConfigFlagError as error:
            error.position = workspace.position("config", name, error.flag)
            raise
    ctx.default_map = {**(ctx.default_map or {}), **defaults}


def _checked(ctx: click.Context, name: str, flags: Mapping[str, Any]) -> dict[str, Any]:
    options = (param for param in ctx.command.params if isinstance(param, click.Option))
    known = {opt.removeprefix("--"): param for param in options for opt in param.opts}
    known.pop("config", None)  # configs do not inherit from each other
    for name_ in sorted(flags.keys() - known.keys() - _flags_of_test(ctx)):
        what = f"[config.{name}] sets unknown flag '{name_}' of kabuild {ctx.command.name}"
        raise _ConfigFlagError(name_, what, suggest(name_, known))
    return {
        str(known[name_].name): _as_flag(ctx, name_, known[name_], value)
        for name_, value in flags.items()
        if name_ in known
    }


def _check_names(workspace: Workspace, flags: Mapping[str, Any]) -> None:
    """Raise _ConfigFlagError for names that this workspace does not have."""
    from kabuild.analysis.configure import find_agent  # most calls use no config

    loader = Loader(workspace)
    checks: Mapping[str, Callable[[str], object]] = {
        "platform": loader.platforms.parse,
        "agent": lambda name: find_agent(loader, workspace.agent_label(name)),
        "policy": lambda name: check_policy(name, loader.rules.gates().all),
        "gates": lambda text: choose(words_of(text), Pick.USUAL, loader.rules.gates().all),
    }
    for flag_name, check in checks.items():
        if flag_name in flags:
            try:
                check(_text(flags[flag_name]))
            except UsageError as error:
                raise _ConfigFlagError(flag_name, error.message, error.hint) from None


def _flags_of_test(ctx: click.Context) -> set[str]:
    """The flags of ``test``: a config may set them even if the current command lacks them."""
    root = ctx.find_root()
    test = root.command.get_command(root, "test") if isinstance(root.command, click.Group) else None
    return {
        name.removeprefix("--")
        for param in (test or ctx.command).params
        if isinstance(param, click.Option)
        for name in param.opts
    } - {"config"}


def _as_flag(ctx: click.Context, name: str, option: click.Option, value: Any) -> Any:
    """A value as the option takes it. Raises _ConfigFlagError for an invalid one."""
    if option.is_flag != isinstance(value, bool):
        kind = "true or false" if option.is_flag else "a string, a number or a list of these"
        raise _ConfigFlagError(name, f"'{name}' must be {kind}, got {_toml(value)}", "")
    if option.is_flag:
        return value
    text: str | list[str] = _text(value)
    if option.multiple:
        text = [str(item) for item in (value if isinstance(value, list) else [value])]
    try:
        option.process_value(ctx, text)
    except click.BadParameter as error:
        raise _ConfigFlagError(name, f"invalid value for '{name}': {error.message}", "") from None
    except UsageError as error:
        raise _ConfigFlagError(name, error.message, error.hint) from None
    return text


def _text(value: Any) -> str:
    """A value as the command line has it."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _toml(value: Any) -> str:
    """A value as a TOML file has it; JSON is close enough."""
    return json.dumps(value, ensure_ascii=False)


def words_of(text: str) -> tuple[str, ...]:
    """The words of a list with commas, sorted and unique."""
    return tuple(sorted({part.strip() for part in text.split(",")} - {""}))
