"""Secure sums at the edge. Of five sites one is killed before it has dealt, one after, and one cheats; then the bytes
of ten sites are counted.
"""

from __future__ import annotations

import threading
import time
from statistics import median
from typing import Any

from ferret_bench._edge.site_process import Site
from ferret_bench._edge.testbed import Deadline, World, await_round
from ferret_bench.base import Say
from ferret_cli.ledger_replay import verified_records
from ferret_core.protocol.errors import FerretError
from ferret_core.secure.member import STOCK
from ferret_core.secure.prekeys import PREKEY_BYTES
from ferret_sdk.participant.egress_log import SentLog
from ferret_sdk.participant.participant import Participant
from ferret_sdk.participant.secure_sums import FEW
from ferret_sdk.service.run import Run

ROUNDS = 5
STAGE_SECONDS = 20
BEFORE, AFTER = "secure.dealt", "secure.shares_accepted"
"""The deal is on disk, and nothing of it was sent; or all have dealt, and the site has not trained."""
CHEATING = ("-m", "ferret_bench._edge.cheating", "join", "--yes")
ALGORITHM = {
    "name": "ferret",
    "seeds": "shared",
    "allocation": "fixed",
    "K": 16_384,
    "local": {"optimizer": "adam", "learning_rate": 1e-4, "steps": 2, "batch_size": 4},
    "refuse_noisy_rounds": False,
}
"""It takes part in the rounds and hardly learns."""


def play(world: World, say: Say, deadline: Deadline) -> dict[str, Any]:
    """Runs five sites. In the first attempt two are killed, too many for the sum, and the round is repeated. Then one
    cheats, and each of the killed ones is killed alone.

    Raises the experiment's error, and ``experiment.timeout`` after the deadline.
    """
    begin = time.perf_counter()
    run = _submit(world, "five sites", 5, ROUNDS)
    steady, witness, before, after = (world.site(run, name) for name in ("steady", "witness", "before", "after"))
    cheater = world.site(run, "cheater", CHEATING)
    for site in (steady, witness, cheater):
        site.start()
    before.start(FERRET_FAILPOINT=f"{BEFORE}:1")
    after.start(FERRET_FAILPOINT=f"{AFTER}:1")
    killed = [site.wait(deadline.left()) for site in (before, after)]
    say("before was killed before it sent its shares, after once it had: three are too few, and the round is repeated")
    await_round(run, 1, deadline)
    before.start(FERRET_FAILPOINT=f"{BEFORE}:3")
    after.start(FERRET_FAILPOINT=f"{AFTER}:2")
    for site, number in ((after, 3), (before, 4)):
        killed.append(site.wait(deadline.left()))
        say(f"{site.name} was killed in round {run.refresh().experiment.round + 1}: the other four are summed")
        await_round(run, number, deadline)
        site.start()
    run.wait(deadline.left())
    sites = [steady, witness, before, after, cheater]
    statuses = {site.name: site.wait(deadline.left()) for site in sites}
    return {
        "state": run.refresh().state.value,
        "rounds": run.experiment.round,
        "digest": run.experiment.digest,
        "agree": all(site.digest == run.experiment.digest for site in sites),
        "attempts": [*{each.number: each.attempt for each in run.rounds()}.values()],
        "survivors": [[*record.groups[0].survivors] for record in verified_records(run, sums=True)],
        "named": sorted({f"{each.participant}: {each.code}" for each in run.rejections() if _is_cheating(each.code)}),
        "killed": killed,
        "sites": [_found(site, statuses[site.name]) for site in sites],
        "seconds": time.perf_counter() - begin,
    }


def count(world: World, members: int, rounds: int, say: Say, deadline: Deadline) -> dict[str, Any]:
    """Runs ``members`` sites in this process and counts what each sends for a round in addition to the coordinates.

    ``extra`` counts the bodies of all requests, as their logs have them: deal, signature, shares, signs of life, and
    one-time keys as often as a site sends them in a long experiment. ``wire`` counts HTTP and TLS too.
    """
    run = _submit(world, f"{members} sites", members, rounds)
    sites = [_Member(world, run, number) for number in range(1, members + 1)]
    say(f"{members} sites in one process")
    for site in sites:
        site.thread.start()
    run.wait(deadline.left())
    for site in sites:
        site.thread.join(deadline.left())
        if site.error is not None:
            raise site.error
    (transcript,) = run.transcripts(1)
    vector = transcript.roster.layout.size
    extra = [site.in_addition(rounds, vector) for site in sites]
    return {
        "members": members,
        "rounds": run.refresh().experiment.round,
        "vector": vector,
        "extra": {"median": median(extra), "max": max(extra)},
        "wire": median(site.relay.bytes.up / rounds - vector for site in sites),
    }


class _Member:
    """A site in a thread."""

    def __init__(self, world: World, run: Run, number: int) -> None:
        name = f"site-{number:02}"
        self.relay = world.relay()
        self._home = world.folder / f"{run.id}-{name}"
        examples = world.examples(self._home, name)
        authority = world.place.settings["FERRET_CA"]
        code = run.create_code().code
        url = f"https://{world.place.host}:{self.relay.port}"
        self._participant = Participant.enrol(url, code, name, self._home, ca=authority)
        self.error: FerretError | None = None
        self.thread = threading.Thread(target=self._run, args=(examples,), daemon=True)

    def _run(self, examples: Any) -> None:
        try:
            self._participant.run(examples)
        except FerretError as error:
            self.error = error

    def in_addition(self, rounds: int, vector: int) -> float:
        """Returns the bytes of bodies in a round, without the vector."""
        sent = 0
        for request in SentLog(self._home).read():
            keys, joining = request.url.endswith("/prekeys"), request.participant is None
            sent += 0 if keys or joining else request.size
        return sent / rounds - vector + PREKEY_BYTES * STOCK / (STOCK - FEW + 1)


def _submit(world: World, name: str, members: int, rounds: int) -> Run:
    return world.submit(
        name,
        rounds,
        participants={"edge": members},
        algorithm=ALGORITHM,
        secure={"aggregation": "masked"},
        round={"quorum": 0.5, "attempts": 9, "deadline_seconds": 4 * STAGE_SECONDS},
    )


def _is_cheating(code: str) -> bool:
    return code == "secure.shares_invalid"


def _found(site: Site, status: int) -> dict[str, Any]:
    return {
        "site": site.name,
        "status": status,
        "rounds": [sent.round for sent in site.sent],
        "up": site.relay.bytes.up,
        "down": site.relay.bytes.down,
        "digest": site.digest,
        "last_words": site.said[-1].text if site.said else None,
    }
