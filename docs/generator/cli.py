"""The page that describes the command line, from the ``ferret`` program itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tables
import typer
from typer.main import get_command

from ferret_cli.main import app
from ferret_core.protocol.errors import Exit

SHARED = ("--help", "--json", "--url", "--insecure-http", "--ca")
"""Options of many commands: described once, and then left out."""


EXITS = {
    Exit.OK: "success",
    Exit.FAILURE: "the command failed, or a check found something wrong",
    Exit.USAGE: "the command, the file or a setting is wrong",
    Exit.NOT_FOUND: "the named thing does not exist",
    Exit.AUTH: "a token or a permission is missing, a site was removed, or its terms forbid the work",
    Exit.CONFLICT: "the state does not allow this, another process is using it, or a repetition would spend privacy",
    Exit.UNREACHABLE: "the server, its database or its broker cannot be reached or is not ready",
    Exit.INTERRUPTED: "Ctrl-C",
}


def page() -> str:
    """Returns Markdown: the exit codes, the shared options, then the commands by what people do with them."""
    root: Any = get_command(app)
    commands = [*_commands(root, "ferret")]
    shared: dict[str, Any] = {}
    for _, command in commands:
        for option in command.params:
            shared.setdefault(option.opts[0], option)
    lines = ["", "## Exit codes", "", *tables.table("code", "meaning")]
    lines += [tables.row(f"`{code.value}`", EXITS[code]) for code in Exit]
    lines += ["", "## Options of many commands", "", *tables.table("option", "")]
    lines += [tables.row(f"`{name}`", _help(shared[name])) for name in SHARED if name in shared]
    panels = {each.name: each.rich_help_panel for each in root.commands.values()}
    for panel in dict.fromkeys(panels.values()):
        lines += ["", f"## {panel}"]
        for name, command in commands:
            if panels[name.split()[1]] == panel:
                lines += ["", f"### `{name}`", "", *_command(command)]
    return "\n".join(lines) + "\n"


def _commands(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yields every command below the ``group`` with its full name."""
    context = typer.Context(group, info_name=name)
    for each in group.list_commands(context):
        command = group.get_command(context, each)
        if hasattr(command, "list_commands"):
            yield from _commands(command, f"{name} {each}")
        elif not command.hidden:
            yield f"{name} {each}", command


def _command(command: Any) -> Iterator[str]:
    yield _plain(command.help or "")
    own = [each for each in command.params if not each.hidden and not set(each.opts) & set(SHARED)]
    if own:
        yield ""
        yield from tables.table("argument or option", "")
        for parameter in own:
            yield tables.row(_name(parameter), _help(parameter))
    if example := (command.epilog or "").partition("\n")[0].removeprefix("Example: "):
        yield from ("", "```console", f"$ {example}", "```")


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`" + (" (required)" if parameter.required else "")
    value = "" if parameter.is_flag else f" {parameter.metavar or parameter.name.upper()}"
    return ", ".join(f"`{name}{value}`" for name in (*parameter.opts, *parameter.secondary_opts))


def _help(parameter: Any) -> str:
    repeated = " Repeatable." if parameter.multiple and "repeat" not in (parameter.help or "") else ""
    environment = f" Environment: `{parameter.envvar}`." if parameter.envvar else ""
    shown = isinstance(parameter.default, str | int | float) and parameter.default not in ("", False)
    default = f" Default: `{parameter.default}`." if shown else ""
    return _plain(parameter.help or "") + repeated + environment + default


def _plain(text: str) -> str:
    """The text without the escapes of Rich's markup; angle brackets would be HTML."""
    return text.replace("\\[", "[").replace("<", "&lt;").replace("\b", "")
