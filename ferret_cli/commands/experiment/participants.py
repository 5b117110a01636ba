"""``ferret experiment participants ID``"""

from __future__ import annotations

from ferret_cli import options


def participants(
    id: options.Id,
    group: options.Group = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """List the real participants of an experiment: when they joined, when they last asked for work, who was revoked."""
    from ferret_cli.experiment_tables import participant_rows
    from ferret_cli.output import emit, table
    from ferret_cli.resolve_experiment import experiment
    from ferret_sdk.service.service import Service

    found = list(experiment(Service(url, insecure_http=insecure_http), id).participants(group))
    if json:
        emit({"items": [participant.model_dump(mode="json") for participant in found]})
        return
    columns = ["participant", "name", "state", "group", "joined", "last work", "revoked", "reason"]
    table(columns, participant_rows(found))
