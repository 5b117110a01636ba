"""A process that has everything imported and forks a child per run, so that a run costs no more than its work.

Reads one request per line, after a first line with the kind of experiment there will be, and answers it with one: what
the child found, or that it was killed. It has one thread and keeps nothing, so its children are as good as fresh
processes.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import threading
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from conftest import Service

from ferret_api.app import create_app
from ferret_api.auth.admin_token import AdminToken
from ferret_api.context import Context
from ferret_api.limits.poll_interval import PollInterval
from ferret_api.limits.rate_limits import RateLimits
from ferret_api.server import Server, listen
from ferret_api.settings import ApiSettings
from ferret_core import catalog
from ferret_core.experiment.federated_data import FederatedData
from ferret_core.models.load import context_of, load
from ferret_core.models.save import save
from ferret_core.protocol.signatures import new_key, public_key
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.system import failpoints
from ferret_db.engine import file_integrity
from ferret_db.engine.garbage_collection import collect
from ferret_db.repositories import artifacts, assignments, contributions, events, ledger, metric_series, participants
from ferret_db.repositories import rounds as round_rows
from ferret_db.repositories import stored_files as reference_rows
from ferret_db.repositories.stored_files import StoredFileRef
from ferret_sdk.participant.participant import Participant
from ferret_worker import coordinate
from ferret_worker.settings import WorkerSettings
from tests import documents

coordinate.OPENED_AT_ONCE = 1  # a round of two is opened in steps, as one of thousands is  # pyrefly: ignore[bad-assignment]
CLINIC = "clinic"
TURNS = 40
KILLED_ON_PURPOSE = 100

Request = dict[str, Any]


def main() -> None:
    torch.set_num_threads(1)
    warm_up(ExperimentSpec.model_validate_json(sys.stdin.readline()))
    gc.freeze()  # else every collection in a child copies what it looks at
    for line in sys.stdin:
        sys.stdout.write(json.dumps(in_child(json.loads(line))) + "\n")
        sys.stdout.flush()


def warm_up(spec: ExperimentSpec) -> None:
    """Everything that imports or compiles at its first use, and starts no thread, as a digest of many bytes would."""
    loaded = load(spec.model)
    with tempfile.TemporaryDirectory() as folder:
        save(loaded, Path(folder))
        service = Service(WorkerSettings(home=Path(folder)))
        service.submit(spec)
        service.later()
        service.database.dispose()
    tokens = torch.tensor([[1, 2, 3]])
    loaded.model(input_ids=tokens, labels=tokens)
    catalog.algorithm(catalog.ResolvedExperiment.of(spec))
    FederatedData(spec, loaded.tokenizer, context_of(loaded.model))


def in_child(request: Request) -> dict[str, Any]:
    """What the request's work gave, how it failed, or the signal that ended it."""
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "a fork takes one thread along, and the locks of all"
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        with os.fdopen(writing, "w") as answer:
            json.dump(_run(request), answer)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        told = answer.read()
    _, status = os.waitpid(child, 0)
    return json.loads(told) if os.WIFEXITED(status) else {"signal": os.WTERMSIG(status)}


def _run(request: Request) -> dict[str, Any]:
    try:
        failpoints.arm(request["failpoint"])
        where = {"home": Path(request["home"]), "database_url": request["database_url"]}
        service = Service(WorkerSettings(**where, task_max_attempts=KILLED_ON_PURPOSE))
        return {"result": WORKS[request["work"]](service, request)}
    except BaseException:
        return {"error": traceback.format_exc()}


def submit(service: Service, request: Request) -> dict[str, str]:
    """The experiment of ``spec``; where that asks for a real participant, with one."""
    spec = ExperimentSpec.model_validate(request["spec"])
    experiment = service.submit(spec)
    if not spec.participants.edge:
        return {"experiment": experiment}
    with service.database.begin() as s:
        _, code = participants.create_enrolment(s, experiment, 60)
        key = new_key()
        row, token = participants.enrol(s, code, CLINIC, public_key(key))
        return {"experiment": experiment, "participant": row.id, "token": token, "key": key}


def finish(service: Service, request: Request) -> dict[str, Any]:
    """Goes on from whatever the processes before have left, to the experiment's end."""
    service.later()
    if "participant" in request:
        _with_a_participant(service, request)
    for _ in range(TURNS):
        service.run()
        if service.experiment(request["experiment"]).state.finished:
            return look(service, request)
        service.later()
    raise TimeoutError("nothing moves the experiment any more")


def _with_a_participant(service: Service, request: Request) -> None:
    """The API, its worker and the participant, each in a thread; they live until the experiment's end."""
    settings = ApiSettings(home=service.settings.home)
    context = Context(
        settings=settings,
        admin=AdminToken("of-no-use"),
        broker=None,
        database=service.database,
        storage=service.context.storage,
        limits=RateLimits(settings),
        pace=PollInterval(replace(settings.sizing, poll_seconds=0.02)),
    )
    with listen("127.0.0.1", 0) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        serving = threading.Thread(
            target=Server(create_app(settings, context), context).run, args=([listener],), daemon=True
        )
        serving.start()
        given = {name: request[name] for name in ("experiment", "participant", "token", "key")}
        member = documents.membership(url, CLINIC, **given)
        taking_part = threading.Thread(
            target=Participant(member, service.settings.home).run, args=(Path(request["examples"]),), daemon=True
        )
        taking_part.start()
        while taking_part.is_alive():
            service.run()
            time.sleep(0.01)


def sweep(service: Service, request: Request) -> list[int]:
    """Collects all garbage, however young."""
    return list(collect(service.database, service.context.storage, grace=0) or [])


def repair(service: Service, request: Request) -> None:
    """Damages nothing itself: rebuilds what it finds."""
    from ferret_worker.repair import repair

    repair(service.context, request["experiment"])


def look(service: Service, request: Request) -> dict[str, Any]:
    """Everything that an experiment comes to, but times and ids; the storage holds what it needs, whole, and nothing
    else."""
    experiment = service.experiment(request["experiment"])
    sweep(service, request)
    with service.database.read() as s:
        references: list[StoredFileRef] = list(reference_rows.of_all(s))
        tried = [item.round for item in round_rows.list_page(s, experiment.id, 100).items]
        reports = [item for round_ in tried for item in assignments.of_round(s, round_.id)]
        accepted = contributions.of_experiment(s, experiment.id)
        found = metric_series.curves(s, experiment.id).series
        losses = {metric.name: [point.value for point in metric.points] for metric in found}
        return {
            "state": [experiment.state, experiment.digest, experiment.error],
            # A signature, and so the hash, covers the assignment's id, which is drawn anew in every run.
            "ledger": [
                {**entry.record, "previous": "", "signatures": [each[0] for each in entry.record["signatures"]]}
                for entry in ledger.after(s, experiment.id, 0, 100)
            ],
            "rounds": [
                [item.number, item.attempt, item.state, item.contributions_digest, item.bytes_up] for item in tried
            ],
            "assignments": [[item.round, item.participant, item.state] for item in reports],
            "contributions": [[item.round, item.participant, item.digest, item.memory_digest] for item in accepted],
            "artifacts": [[file.round, file.name, file.digest] for file in artifacts.of_experiment(s, experiment.id)],
            "losses": {name: losses[name] for name in ("eval_loss", "train_loss")},
            "events": sorted(
                [event.type, event.round or 0, event.data.get("participant", "")]
                for event in events.after(s, experiment.id, 0, 1000)
                if event.type != "checkpoint.rebuilt"
            ),
            "damaged": file_integrity.damaged(service.context.storage, references),
            "unnamed": sorted(
                {item.location for item in service.context.storage.list()} ^ {file.location for file in references}
            ),
        }


WORKS = {"submit": submit, "finish": finish, "collect": sweep, "repair": repair, "look": look}


if __name__ == "__main__":
    main()
