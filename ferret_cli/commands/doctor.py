"""``ferret doctor``"""

from __future__ import annotations

import typer

from ferret_cli import options
from ferret_cli.output import emit, say, table


def doctor(port: options.Port = options.DEFAULT_PORT, json: options.Json = False) -> None:
    """Check this machine's software and settings; show the command that fixes each problem."""
    from ferret_cli.doctor import software

    found = [*software.checks(), software.server()]
    if found[-1].ok:
        from ferret_cli.doctor import installation
        from ferret_runtime.settings import ServiceSettings

        found += installation.checks(ServiceSettings.read(), port)
    if json:
        emit({"ok": all(check.ok is not False for check in found), "checks": [check._asdict() for check in found]})
    else:
        table(["", "what", "found", "fix it with"], [(c.mark, c.name, c.detail, c.fix or "") for c in found])
    if any(check.ok is False for check in found):
        say("something needs to be fixed")
        raise typer.Exit(1)
