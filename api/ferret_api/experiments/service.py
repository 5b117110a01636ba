"""Submission and display of experiments."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.orm import Session

from ferret_core import catalog, compatibility
from ferret_core.aggregation.projection_noise import participants_of
from ferret_core.experiment.allowlist import require_allowed
from ferret_core.experiment.readers import LAST_AUDIT, readers
from ferret_core.privacy.mechanism import RecordMechanism, calibrated
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.experiments import Experiment, JoinedExperiment, Privacy, Reader
from ferret_core.protocol.resources.projects import AllowedModel
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.tags_and_notes import LEAST_PRIORITY
from ferret_core.replica import model_card
from ferret_core.system import untrusted_files
from ferret_core.system.untrusted_files import Readable
from ferret_db import tables
from ferret_db.database import Database
from ferret_db.engine import lifecycle, stalls
from ferret_db.engine.early_stopping import decline, ranked
from ferret_db.repositories import audit, experiments, metrics, projects, rounds

_COMPUTED = {"tags", "stalled", "best", "decline", "privacy", "metrics", "bytes_up", "bytes_down", "spec"}
_COLUMNS = Experiment.model_fields.keys() - _COMPUTED


def submit(
    database: Database,
    spec: ExperimentSpec,
    readable: Readable,
    actor: str,
    *,
    project: str | None,
    idempotency_key: str | None,
    priority: int = LEAST_PRIORITY,
    original: tables.Experiment | None = None,
) -> Experiment:
    """Creates the experiment of a valid specification, or returns the one stored under the same key.

    It belongs to ``project``, by default to the only one that ``database`` shows. A clone gets the tags of its
    ``original``, since both belong to one search, but not its notes, which describe that run, nor its priority.
    """
    experiment = catalog.resolve(spec)
    compatibility.require(experiment, compatibility.SERVICE, "spec.invalid")
    resolved = calibrated(experiment.spec, participants_of(experiment.spec))
    require_roots(resolved, readable)
    with database.begin() as s:
        row, made = lifecycle.submit(
            s,
            resolved,
            project=chosen_project(s, project, resolved),
            priority=priority,
            idempotency_key=idempotency_key,
            cloned_from=original.id if original else None,
        )
        if made:
            if original:
                experiments.replace_tags(s, row.id, experiments.tags_of(s, [original.id])[original.id])
            _record(s, actor, row, resolved)
        return shown(s, row)


def chosen_project(s: Session, wanted: str | None, spec: ExperimentSpec) -> str:
    """Returns the name of the ``wanted`` project, or of the only one.

    Raises ``project.refused`` if it does not allow the model or the data of ``spec``."""
    chosen = projects.get(s, wanted or _only(s))
    models = None if chosen.models is None else [AllowedModel.model_validate(model) for model in chosen.models]
    require_allowed(spec, models, chosen.data, chosen.name)
    return chosen.name


def _only(s: Session) -> str:
    seen = projects.names(s)
    if len(seen) != 1:
        choice = f"choose one of {', '.join(seen)}" if seen else "ask an administrator to add you to one"
        raise FerretError.of_field("request.invalid", "project", None, f"an experiment belongs to a project; {choice}")
    return seen[0]


def _record(s: Session, actor: str, row: tables.Experiment, spec: ExperimentSpec) -> None:
    told = {"project": row.project, "name": row.name, "model": spec.model.source, "revision": spec.model.revision}
    told |= {"dataset": row.dataset, "algorithm": row.algorithm, "rounds": row.rounds, "cloned_from": row.cloned_from}
    audit.record(s, actor, "experiment.cloned" if row.cloned_from else "experiment.submitted", row.id, **told)


def show(database: Database, experiment_id: str) -> Experiment:
    with database.read() as s:
        return shown(s, experiments.get(s, experiment_id))


def show_participant(database: Database, experiment_id: str) -> JoinedExperiment:
    """Returns the experiment as its participants see it."""
    with database.read() as s:
        row = experiments.get(s, experiment_id)
        curves = metrics.summary(s, [row.id])[row.id]
    columns = {name: getattr(row, name) for name in JoinedExperiment.model_fields.keys() - {"spec", "metrics"}}
    told = {name: curve for name, curve in curves.items() if name in model_card.METRICS}
    spec = catalog.without_places(experiments.spec_of(row))
    return JoinedExperiment.model_validate({**columns, "spec": spec.model_dump(mode="json"), "metrics": told})


def shown(s: Session, row: tables.Experiment) -> Experiment:
    """Returns the experiment as the API shows it."""
    columns = {name: getattr(row, name) for name in _COLUMNS}
    spec = experiments.spec_of(row)
    sent, curves = rounds.bytes_by_experiment(s, [row.id])[row.id], metrics.summary(s, [row.id])[row.id]
    return Experiment.model_validate(
        {
            **columns,
            "tags": experiments.tags_of(s, [row.id])[row.id],
            "stalled": stalls.stall(s, row),
            "best": best[0]._asdict() if (best := ranked(s, row)) else None,
            "decline": decline(s, row),
            "privacy": privacy_of(spec),
            "metrics": curves,
            "bytes_up": sent.up,
            "bytes_down": sent.down,
            "spec": spec.model_dump(mode="json"),
        }
    )


def privacy_of(spec: ExperimentSpec) -> Privacy | None:
    """Returns the privacy of real participants under a resolved ``spec``; None without any, or if the algorithm is not
    installed here."""
    if not spec.participants.edge:
        return None
    try:
        traits = catalog.ResolvedExperiment.of(spec).traits
    except FerretError:
        return None
    separate, summed = not traits.comparable, spec.secure.least_summed
    found = readers(separate=separate, least_summed=summed, central=spec.privacy.central)
    useful, audit = None, None
    if spec.privacy.of_records:
        useful, audit = RecordMechanism.of(spec, participants_of(spec)).useful, LAST_AUDIT
    described = [Reader.model_validate(each) for each in found]
    return Privacy(readers=described, useful_coordinates=useful, audit=audit)


def require_roots(spec: ExperimentSpec, readable: untrusted_files.Readable) -> None:
    """Raises ``dataset.invalid`` or ``model.invalid`` for a path of a resolved ``spec`` that is not ``readable``.

    The error does not reveal if the path exists.
    """
    for field, path in catalog.paths(spec):
        try:
            untrusted_files.allowed(Path(path).expanduser(), readable)
        except untrusted_files.UntrustedFileError as error:
            raise FerretError.of_field(f"{field.partition('.')[0]}.invalid", field, path, str(error)) from error
