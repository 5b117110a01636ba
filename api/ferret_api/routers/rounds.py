"""Endpoints for the rounds of an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fastapi import APIRouter
from sqlalchemy.orm import Session

from ferret_api.access import Viewer
from ferret_api.http.errors import problems
from ferret_api.schemas import PAGE, PREFIX, Cursor, ExperimentId, Limit, RoundNumber
from ferret_core.ledger.record import GroupRecord
from ferret_core.protocol.resources.rounds import Round, RoundPage, SumGroup
from ferret_db.repositories import experiments, participants, rounds, service_clock
from ferret_db.repositories.rounds import RoundSummary

router = APIRouter(prefix=f"{PREFIX}/experiments/{{experiment_id}}/rounds", tags=["rounds"])


@router.get("", operation_id="list_rounds", responses=problems("experiment.not_found"))
def list_rounds(experiment_id: ExperimentId, caller: Viewer, limit: Limit = PAGE, cursor: Cursor = None) -> RoundPage:
    """Lists the rounds in order, with every attempt. Requires the role viewer."""
    with caller.database.read() as s:
        experiments.get(s, experiment_id)
        page = rounds.list_page(s, experiment_id, limit, cursor)
        return RoundPage(items=_shown(s, experiment_id, page.items), next_cursor=page.next_cursor)


@router.get("/{number}", operation_id="get_round", responses=problems("experiment.not_found", "round.not_found"))
def get_round(experiment_id: ExperimentId, number: RoundNumber, caller: Viewer) -> Round:
    """Returns the last attempt at one round. Requires the role viewer."""
    with caller.database.read() as s:
        experiments.get(s, experiment_id)
        (found,) = _shown(s, experiment_id, [rounds.summary(s, experiment_id, number)])
        return found


def _shown(s: Session, experiment_id: str, summaries: Sequence[RoundSummary]) -> list[Round]:
    dropped = {name for summary in summaries for group in summary.groups for name in _dropped(group)}
    named = participants.display_names(s, experiment_id, dropped) if dropped else {}
    return [_round(s, summary, named) for summary in summaries]


def _round(s: Session, summary: RoundSummary, named: Mapping[str, str]) -> Round:
    columns = {name: getattr(summary.round, name) for name in Round.model_fields if hasattr(summary.round, name)}
    deadline_at = service_clock.to_database_time(s, summary.round.deadline_at)
    groups = [
        SumGroup(
            name=group.name,
            members=len(group.members),
            survivors=len(group.survivors),
            dropped=[named.get(name, name) for name in _dropped(group)],
            refused=group.refused,
        )
        for group in summary.groups
    ]
    return Round.model_validate(columns | summary._asdict() | {"deadline_at": deadline_at, "groups": groups})


def _dropped(group: GroupRecord) -> list[str]:
    return [name for name in group.members if name not in group.survivors]
