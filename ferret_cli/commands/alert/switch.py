"""``ferret alert disable`` and ``enable``"""

from __future__ import annotations

from ferret_cli import options
from ferret_cli.commands.alert.of_project import AlertId, OfProject


def disable(
    id: AlertId,
    project: OfProject = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Tell somebody nothing for now, also not what is still to be sent. The alert and its key are kept."""
    _switch(id, project, url, insecure_http, json, enabled=False)


def enable(
    id: AlertId,
    project: OfProject = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Tell somebody again what happens from now on."""
    _switch(id, project, url, insecure_http, json, enabled=True)


def _switch(id: str, project: str | None, url: str | None, insecure_http: bool, json: bool, *, enabled: bool) -> None:
    from ferret_cli.commands.alert.of_project import chosen
    from ferret_cli.output import emit, say
    from ferret_sdk.service.service import Service

    service = Service(url, insecure_http=insecure_http)
    changed = service.alerts.switch(chosen(service, project), id, enabled=enabled)
    say(f"{changed.address} is told " + ("again" if enabled else "nothing, until you enable it"))
    if json:
        emit(changed)
