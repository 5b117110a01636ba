"""``ferret experiment verify ID``"""

from __future__ import annotations

from ferret_cli import options


def verify(id: options.Id, url: options.Url = None, json: options.Json = False) -> None:
    """Rebuild the model from the base and the ledger; compare every digest on the way, and those of checkpoints."""
    from ferret_cli.output import emit, say
    from ferret_cli.setup import require_training

    require_training()

    from ferret_cli.verification import verified_records
    from ferret_sdk.service import Service

    run = Service(url).experiment(id)
    digest, rounds = run.experiment.base_digest, 0
    for record in verified_records(run):
        digest, rounds = record.digest, record.round
        say(f"round {record.round:>4}  {record.digest[:16]}…  {len(record.contributions)} contributions  holds")
    say(f"{id}: {rounds} rounds hold, the model is {digest}")
    if json:
        emit({"id": id, "rounds": rounds, "digest": digest, "verified": True})
