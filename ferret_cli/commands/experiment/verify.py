"""``ferret experiment verify ID``"""

from __future__ import annotations

from ferret_cli import options


def verify(
    id: options.Id, url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False
) -> None:
    """Rebuild the model from the base model and the ledger, and compare every digest, checkpoints included.

    Each round's hash stands for its record and all before: note the last one, and compare it with those in receipts.
    """
    from ferret_cli.output import emit, say
    from ferret_cli.requirements_check import require_training
    from ferret_cli.resolve_experiment import experiment

    require_training()

    from ferret_cli.ledger_replay import verified_records
    from ferret_sdk.service.service import Service

    run = experiment(Service(url, insecure_http=insecure_http), id)
    digest, hashes = run.experiment.base_digest, list[str]()
    for record in verified_records(run):
        digest = record.digest
        hashes.append(record.hash)
        signed = f", {len(record.signatures)} signed" if record.signatures else ""
        told = f"{record.digest[:16]}…  {len(record.contributions)} contributions{signed}"
        say(f"round {record.round:>4}  {told}  verified; hash {record.hash}")
    say(f"{run.id}: {len(hashes)} rounds verified, the model's digest is {digest}")
    if json:
        emit({"id": run.id, "rounds": len(hashes), "digest": digest, "hashes": hashes, "verified": True})
