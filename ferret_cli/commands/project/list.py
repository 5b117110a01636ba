"""``ferret project list``"""

from __future__ import annotations

from ferret_cli import options


def list_projects(
    url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False
) -> None:
    """List the projects whose experiments you see."""
    from ferret_cli.output import emit, table
    from ferret_sdk.service.service import Service

    found = [*Service(url, insecure_http=insecure_http).projects]
    if json:
        emit({"items": [project.model_dump(mode="json") for project in found]})
        return
    table(["name", "since", "about"], [(each.name, f"{each.created_at:%Y-%m-%d}", each.description) for each in found])
