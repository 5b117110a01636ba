"""An experiment as rows of tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from statistics import median
from typing import TYPE_CHECKING, Any

from ferret_core.experiment.readers import protected_records
from ferret_core.protocol.formatting import quantity, size
from ferret_core.protocol.metrics import METRICS, names_of

if TYPE_CHECKING:
    from ferret_core.protocol.resources.experiments import (
        Decline,
        Experiment,
        ExperimentGroup,
        ListedExperiment,
        MetricSummary,
        SeedStatistics,
    )
    from ferret_core.protocol.resources.participants import EnrolmentInfo, Participant
    from ferret_core.protocol.resources.rounds import Rejection, Round

Row = tuple[Any, ...]

LIST_COLUMNS = ("id", "name", "state", "round", "algorithm", "eval loss", "Rouge-L", "created", "project", "tags")
GROUP_COLUMNS = ("newest", "name", "runs", "states", "algorithm", "eval loss", "Rouge-L", "created", "project")


def list_row(experiment: ListedExperiment) -> Row:
    return (
        experiment.id,
        experiment.name,
        experiment.shown_state,
        f"{experiment.round}/{experiment.rounds}",
        experiment.algorithm,
        _last(experiment.metrics, "eval_loss"),
        _last(experiment.metrics, "rouge_l"),
        f"{experiment.created_at:%Y-%m-%d %H:%M}",
        experiment.project,
        ", ".join(experiment.tags),
    )


def group_row(group: ExperimentGroup) -> Row:
    newest = group.newest
    return (
        newest.id,
        newest.name,
        group.count,
        ", ".join(f"{count} {state.value}" for state, count in group.states.items()),
        newest.algorithm,
        _mean(group, "eval_loss"),
        _mean(group, "rouge_l"),
        f"{newest.created_at:%Y-%m-%d %H:%M}",
        newest.project,
    )


def overview_rows(experiment: Experiment) -> Iterator[Row]:
    yield "id", experiment.id
    yield "project", experiment.project
    yield "name", experiment.name
    if experiment.tags:
        yield "tags", ", ".join(experiment.tags)
    yield "state", experiment.state.value
    if stall := experiment.stalled:
        yield "stalled", f"since {stall.since:%Y-%m-%d %H:%M} UTC: {stall.detail} ({stall.code})"
    if experiment.error:
        yield "error", f"{experiment.error.title}: {experiment.error.detail}"
    if experiment.stopped:
        yield "ended", experiment.stopped.detail
    if experiment.priority > 1:
        yield "priority", experiment.priority
    yield "round", f"{experiment.round} of {experiment.rounds}"
    if best := experiment.best:
        yield "best round", f"{best.round}: {METRICS[best.metric].label} {quantity(best.metric, best.value)}"
    if experiment.decline:
        yield "result", decline_line(experiment.id, experiment.decline)
    yield "algorithm", experiment.algorithm
    yield "dataset", experiment.dataset
    yield "participants", experiment.participants
    yield "sent", size(experiment.bytes_up)
    yield "received", size(experiment.bytes_down)
    yield "model", experiment.digest or experiment.base_digest
    if experiment.cloned_from:
        yield "cloned from", experiment.cloned_from
    if experiment.archived_at:
        yield "archived", f"{experiment.archived_at:%Y-%m-%d %H:%M} UTC"
    if experiment.notes:
        yield "notes", experiment.notes


def privacy_rows(experiment: Experiment) -> Iterator[Row]:
    """Returns who reads what, and the protection of records as far as it is spent."""
    if (found := experiment.privacy) is None:
        return
    for reader in found.readers:
        yield reader.who, f"read {reader.what}"
    if found.useful_coordinates is not None:
        promised = experiment.spec["privacy"]
        unit = protected_records(promised["unit"])
        spent = experiment.metrics.get("epsilon")
        reached = f"ε = {spent.last:.3g}" if spent else "an unknown part" if experiment.round else "nothing"
        yield "protected", f"{unit}: {reached} of {promised['epsilon']:g} is spent, δ = {promised['delta']:g}"
        sent = experiment.spec["algorithm"].get("K")
        yield "useful coordinates", f"K* = {found.useful_coordinates:,.0f}, K = {sent:,}"
        yield "last audit", found.audit or ""


def sum_rows(rounds: Sequence[Round]) -> Iterator[Row]:
    """Returns the secure sums of each round."""
    for done in rounds:
        for group in done.groups:
            yield (
                done.number,
                group.name,
                f"{group.survivors}/{group.members}",
                ", ".join(group.dropped) or None,
                group.refused,
            )


def decline_line(experiment_id: str, decline: Decline) -> str:
    """Returns the comparison, with the command for a better round if one exists."""
    number = decline.best.round
    return decline.detail + (f"; ferret experiment export {experiment_id} FOLDER --round {number}" if number else "")


def metrics_rows(experiment: Experiment) -> Iterator[Row]:
    for name, summary in sorted(experiment.metrics.items()):
        if name not in names_of("cost"):
            yield name, *(quantity(name, value) for value in (summary.first, summary.last, summary.best))


def cost_rows(rounds: Sequence[Round]) -> Iterator[Row]:
    """Returns the median of each cost over the rounds: the first compiles kernels, and would spoil a mean."""
    for name in names_of("cost"):
        values = [value for done in rounds if (value := _cost(done, name)) is not None]
        if values:
            each = ", each" if name.startswith(("numbers_", "bytes_")) else ""
            yield METRICS[name].label + each, quantity(name, median(values))


def rejection_rows(rejections: Iterable[Rejection]) -> Iterator[Row]:
    for refused in rejections:
        yield refused.round, refused.display_name, refused.count, refused.code, refused.detail


def participant_rows(participants: Iterable[Participant]) -> Iterator[Row]:
    for found in participants:
        revoked = found.revoked_at and f"{found.revoked_at:%Y-%m-%d %H:%M}"
        yield (
            found.display_name,
            found.name,
            found.state.value,
            found.group,
            f"{found.created_at:%Y-%m-%d %H:%M}",
            f"{found.seen_at:%Y-%m-%d %H:%M}",
            revoked,
            found.revocation_reason,
        )


def code_rows(codes: Iterable[EnrolmentInfo], now: datetime) -> Iterator[Row]:
    for found in codes:
        yield (
            found.id,
            _code_state(found, now),
            found.group,
            "needed" if found.approval else None,
            f"{found.created_at:%Y-%m-%d %H:%M}",
            f"{found.expires_at:%Y-%m-%d %H:%M}",
            found.used_by,
            found.refused or None,
        )


def _code_state(code: EnrolmentInfo, now: datetime) -> str:
    if code.used_at:
        return "used"
    if code.revoked_at:
        return "revoked"
    return "open" if code.expires_at > now else "expired"


def label_rows(rounds: Sequence[Round]) -> Iterator[Row]:
    """Returns loss and Rouge-L of each label of the held-out data, in the last evaluated round."""
    found = next((done.metrics for done in reversed(rounds) if "eval_loss" in done.metrics), {})
    prefix = "eval_loss/"
    for label in sorted(name.removeprefix(prefix) for name in found if name.startswith(prefix)):
        yield label, *(quantity(name, found.get(f"{name}/{label}")) for name in ("eval_loss", "rouge_l"))


def round_rows(rounds: Sequence[Round]) -> Iterator[Row]:
    for found in rounds:
        scores = (quantity(name, found.metrics.get(name)) for name in ("train_loss", "eval_loss", "rouge_l"))
        accepted = f"{found.accepted}/{found.participants}"
        sent = (size(found.bytes_up), size(found.bytes_down))
        number = f"{found.number}" if found.attempt == 1 else f"{found.number}, attempt {found.attempt}"
        yield number, found.state.value, accepted, *scores, *sent


def _cost(done: Round, name: str) -> float | None:
    """Returns one round's cost per participant; byte counts are stored as sums over all."""
    value = done.metrics.get(name)
    if value is None or name not in {"bytes_up", "bytes_down"}:
        return value
    return value / max(1, done.accepted if name == "bytes_up" else done.participants)


def _mean(group: ExperimentGroup, name: str) -> str | None:
    """Returns ``1.9000 ± 0.1200`` over the group's last values."""
    found = group.metrics.get(name)
    return None if found is None else _spread(name, found.last)


def _spread(name: str, spread: SeedStatistics) -> str | None:
    mean = quantity(name, spread.mean)
    return mean if spread.sd is None else f"{mean} ± {quantity(name, spread.sd)}"


def _last(metrics: Mapping[str, MetricSummary], name: str) -> str | None:
    return quantity(name, metrics[name].last) if name in metrics else None
