"""``ferret alert remove ID``"""

from __future__ import annotations

from ferret_cli import options
from ferret_cli.commands.alert.of_project import AlertId, OfProject


def remove(
    id: AlertId, project: OfProject = None, url: options.Url = None, insecure_http: options.InsecureHttp = False
) -> None:
    """Tell somebody no more, also not of what is still to be sent."""
    from ferret_cli.commands.alert.of_project import chosen
    from ferret_cli.output import say
    from ferret_sdk.service.service import Service

    service = Service(url, insecure_http=insecure_http)
    service.alerts.remove(chosen(service, project), id)
    say(f"{id} is removed")
