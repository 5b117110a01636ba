"""A site's state of secure sums on disk: killed between any two writes, and shown wrong things by its server."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ferret_core.aggregation.group_sum import task_of
from ferret_core.aggregation.masked_sum import origin_of, spec_digest
from ferret_core.protocol.resources.participants import Lease, SumStep, SumTask
from ferret_core.protocol.signatures import new_key, public_key
from ferret_core.protocol.states import SumStage
from ferret_core.replica.replica import Replica
from ferret_core.secure.group import Group
from ferret_core.secure.member import Member
from ferret_core.secure.prekeys import Prekey, PrekeySecret
from ferret_core.secure.roster import Roster, RosterMember
from ferret_sdk.participant import secure_sums
from ferret_sdk.participant.membership import Membership
from ferret_sdk.participant.secure_sums import SecureSums
from ferret_sdk.participant.site_terms import Secure
from ferret_sdk.participant.spool import Upload
from tests.ferret_core.secure.groups import as_lists, total, vectors_of
from tests.refusals import refused

pytestmark = pytest.mark.heavy
EXPERIMENT = "exp_0123456789abcdef"
NAMES = ["site-1", "site-2", "site-3"]
SIGNS = {"seeds": "shared", "allocation": "fixed", "K": 64, "refuse_noisy_rounds": False}


class Killed(BaseException):
    """The end of a process."""


class Machine:
    """A site whose process is killed and started again. Its server gets what is on disk, and nothing else."""

    def __init__(self, home: Path, name: str, terms: Secure | None = None) -> None:
        self.name, self.path, self.identity = name, home / f"{name}.json", new_key()
        self.terms = terms or Secure()
        self.sent: list[tuple[str, bytes]] = []
        self.delivery = b""
        self.away = False
        self.start()

    def start(self) -> None:
        place = {"experiment": EXPERIMENT, "participant": "par_0123456789abcdef", "name": self.name}
        about = {**place, "display_name": self.name, "token": "t" * 43, "code": "c0" * 32, "key": self.identity}
        member = Membership.model_validate({"url": "https://ferret.example.org", **about})
        self.sums = SecureSums(self, self.path, member, self.terms)  # type: ignore[arg-type]

    def request(self, method: str, path: str, *, content: bytes = b"", **options: Any) -> Any:
        """The transport."""
        if self.away:
            raise Killed
        if method == "PUT":
            self.sent.append((path.rpartition("/")[2], content))
            if not path.endswith("prekeys"):
                assert self.state.message == content, "the state on disk has the message before it is sent"
        return SimpleNamespace(body=self.delivery)

    @property
    def state(self) -> Member:
        return Member.model_validate_json(self.path.read_bytes())

    def last(self, message: str) -> bytes:
        return next(content for name, content in reversed(self.sent) if name == message)

    def listed(self) -> RosterMember:
        keys = self.last("prekeys")
        return RosterMember(
            name=self.name, identity=public_key(self.identity), **Prekey.decode(keys[:128]).model_dump()
        )

    def upload(self, digest: str, context: str) -> Upload:
        return Upload("asg_1", 1, 1, "key", 0.0, None, digest, 1, "", context=context)


@pytest.fixture(scope="module")
def replica(toy_spec: Any) -> Replica:
    participants = {"simulated": 0, "edge": 3}
    return Replica.load(
        toy_spec("ferret", options=SIGNS, participants=participants, secure={"aggregation": "masked"}, rounds=3)
    )


@pytest.fixture
def machines(tmp_path: Path) -> list[Machine]:
    found = [Machine(tmp_path, name) for name in NAMES]
    for machine in found:
        machine.sums.restock(0)
    return found


@pytest.fixture
def roster_for(replica: Replica) -> Callable[..., Roster]:
    """``roster_for(machines)``: the right one for round 1, or with changes another."""

    def make(machines: Collection[Machine], origin: dict[str, Any] | None = None, **changes: Any) -> Roster:
        task = task_of(replica, EXPERIMENT, 1, NAMES[0], 3)
        values: dict[str, Any] = {
            "origin": origin_of(replica, task, 1).model_copy(update=origin or {}),
            "group": 1,
            "members": tuple(machine.listed() for machine in machines),
            "least": 3,
            "colluders": 1,
            "segments": tuple(replica.algorithm.segments(replica.shapes)),  # type: ignore[attr-defined]
        }
        return Roster(**values | changes)

    return make


def lease_of(replica: Replica, machine: Machine, roster: Roster, stage: SumStage = SumStage.DEAL, **task: Any) -> Lease:
    own = task_of(replica, EXPERIMENT, 1, machine.name, 3).model_copy(update=task)
    shown = roster.model_dump(mode="json") if stage == SumStage.DEAL else None
    until = datetime.now(UTC)
    sum_ = SumTask(stage=stage, context=roster.context, roster=shown)  # type: ignore[arg-type]
    return Lease(id="asg_0123456789abcdef", fence=1, lease_seconds=60, lease_until=until, task=own, sum=sum_)


def step_of(roster: Roster, stage: SumStage, survivors: Collection[str], signatures: bytes | None = None) -> SumStep:
    return SumStep(
        assignment="asg_0123456789abcdef",
        round=1,
        stage=stage,  # type: ignore[arg-type]
        context=roster.context,
        survivors=tuple(survivors),
        signatures=None if signatures is None else signatures.hex(),
    )


def kills(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each time it goes on, the machine starts again: killed before a write, after it, and after the message."""
    write = secure_sums.write_durably

    def killed(*about: Any) -> None:
        raise Killed

    monkeypatch.setattr(secure_sums, "write_durably", killed)
    yield machine.start()
    monkeypatch.setattr(secure_sums, "write_durably", write)
    monkeypatch.setattr(secure_sums, "failpoint", killed)
    yield machine.start()
    monkeypatch.setattr(secure_sums, "failpoint", lambda name: None)
    machine.away = True
    yield machine.start()
    machine.away = False
    yield machine.start()
    yield machine.start()  # the response was lost


def test_a_site_that_is_killed_between_any_two_writes_sends_the_same_and_never_more(
    machines: list[Machine], replica: Replica, roster_for: Callable[..., Roster], monkeypatch: pytest.MonkeyPatch
) -> None:
    roster = roster_for(machines)
    victim, group = machines[0], Group(roster)
    vectors = vectors_of(machines, roster.segments)

    def through(step: Callable[[Machine], object]) -> None:
        """Every machine takes the step; the victim again after each kill."""
        for _ in kills(victim, monkeypatch):
            try:
                step(victim)
            except Killed:
                continue
        for machine in machines[1:]:
            step(machine)

    def mask(machine: Machine) -> None:
        lease = lease_of(replica, machine, roster, SumStage.MASK)
        assert lease.sum is not None
        machine.delivery = group.delivery(machine.name)
        if machine.name in masked and machine.sums.may_send(machine.upload(masked[machine.name][1], roster.context)):
            return
        machine.sums.accept(lease, lease.sum)
        found = machine.sums.mask(lease, replica, vectors[machine.name])
        made.setdefault(machine.name, set()).add(found.sealed.digest)
        masked[machine.name] = found.sealed.blob, found.sealed.digest  # the spool
        assert not machine.sums.may_send(machine.upload(found.sealed.digest, roster.context))
        machine.sums.keep(found)
        assert machine.sums.may_send(machine.upload(found.sealed.digest, roster.context))

    masked, made = dict[str, tuple[bytes, str]](), dict[str, set[str]]()
    through(lambda machine: machine.sums.deal(lease_of(replica, machine, roster), roster))
    for machine in machines:
        group.add_deal(machine.name, machine.last("shares"))
    group.close_dealing()
    through(mask)
    for machine in machines:
        group.add_masked(machine.name, masked[machine.name][0])
    assert all(len(digests) == 1 for digests in made.values())
    group.close_masking()
    through(lambda machine: machine.sums.take(step_of(roster, SumStage.AGREE, NAMES)))
    for machine in machines:
        group.add_signature(machine.name, machine.last("survivors"))
    signed = group.signatures()
    through(lambda machine: machine.sums.take(step_of(roster, SumStage.RELEASE, NAMES, signed)))
    for machine in machines:
        group.add_shares(machine.name, machine.last("unmask"))
    assert as_lists(group.sum()) == total(vectors, NAMES)
    for message in ("shares", "survivors", "unmask"):
        assert len({content for name, content in victim.sent if name == message}) == 1
        assert len([name for name, _ in victim.sent if name == message]) > 1, "it was sent again after kills"

    record = SimpleNamespace(round=1)
    victim.sums.follow(record)  # type: ignore[arg-type]
    assert victim.state.attempt is None


@pytest.mark.parametrize(
    "change",
    [
        {"origin": {"base_digest": "00" * 32}},
        {"origin": {"previous": "00" * 32}},
        {"origin": {"spec": "00" * 32}},
        {"origin": {"round": 2}},
        {"origin": {"experiment": "exp_ffffffffffffffff"}},
        {"origin": {"round_seed": 7}},
        {"least": 4},
        {"colluders": 0},
        {"group": 2},
        {"segments": ((64, 1),)},
    ],
    ids=str,
)
def test_a_roster_for_another_sum_than_the_sites_own_is_refused(
    machines: list[Machine], replica: Replica, roster_for: Callable[..., Roster], change: dict[str, Any]
) -> None:
    roster = roster_for(machines, **change)
    with refused("secure.roster_invalid"):
        machines[0].sums.roster(lease_of(replica, machines[0], roster), replica)
    own = roster_for(machines)
    assert machines[0].sums.roster(lease_of(replica, machines[0], own), replica) == own


def test_an_extended_experiment_has_sums_that_a_site_with_the_old_specification_joins(
    machines: list[Machine], replica: Replica, roster_for: Callable[..., Roster]
) -> None:
    extended = spec_digest(replica.spec.model_copy(update={"rounds": 5}))
    roster = roster_for(machines, origin={"spec": extended})
    assert machines[0].sums.roster(lease_of(replica, machines[0], roster, rounds=5), replica) == roster


def test_swapped_keys_swapped_tasks_and_a_roster_of_another_digest_are_refused(
    machines: list[Machine], replica: Replica, roster_for: Callable[..., Roster]
) -> None:
    one, two, three = machines
    own = roster_for(machines)
    forged = PrekeySecret.new().prekey(EXPERIMENT, "site-2", new_key())
    swapped = RosterMember(name="site-2", identity=public_key(two.identity), **forged.model_dump())
    for roster in (
        roster_for(machines, members=(one.listed(), swapped, three.listed())),
        roster_for(machines, members=(two.listed(), one.listed(), three.listed())),
    ):
        with refused("secure.roster_invalid"):
            one.sums.roster(lease_of(replica, one, roster), replica)
    with refused("secure.roster_invalid"):
        one.sums.roster(lease_of(replica, one, own, data_seed=7), replica)
    lease = lease_of(replica, one, own)
    assert lease.sum is not None
    other = lease.model_copy(update={"sum": lease.sum.model_copy(update={"context": "00" * 32})})
    with refused("secure.roster_invalid"):
        one.sums.roster(other, replica)
    assert [name for name, _ in one.sent] == ["prekeys"]


def test_a_site_without_its_state_drops_out_and_sends_new_keys(
    machines: list[Machine], replica: Replica, roster_for: Callable[..., Roster]
) -> None:
    one, roster = machines[0], roster_for(machines)
    one.path.unlink()
    one.start()
    with refused("secure.roster_invalid", "never made"):
        one.sums.deal(lease_of(replica, one, roster), roster)
    old = one.last("prekeys")
    one.sums.restock(7)
    assert one.last("prekeys") != old
    lease = lease_of(replica, one, roster, SumStage.MASK)
    assert lease.sum is not None
    with refused("secure.closed", "lost its state"):
        one.sums.accept(lease, lease.sum)


def test_the_secrets_of_an_unfinished_attempt_are_erased_after_a_week(
    machines: list[Machine], roster_for: Callable[..., Roster], replica: Replica
) -> None:
    site, roster = machines[0], roster_for(machines)
    site.sums.deal(lease_of(replica, site, roster), roster)
    assert site.state.attempt is not None
    os.utime(site.path, (0, 0))
    site.start()
    site.sums.restock(8)
    assert site.state.attempt is None


def test_a_group_below_the_pins_is_refused_and_two_lists_get_one_signature(
    tmp_path: Path, replica: Replica, roster_for: Callable[..., Roster]
) -> None:
    machines = [Machine(tmp_path, name) for name in [*NAMES, "site-4", "site-5"]]
    stranger = public_key(new_key())
    machines[0].terms = Secure(peers=[public_key(machines[1].identity), stranger], peers_required=1)
    machines[1].terms = Secure(peers=[stranger], peers_required=1)
    for machine in machines:
        machine.start()
        machine.sums.restock(0)
    roster = roster_for(machines)
    with refused("secure.peers_unknown"):
        machines[1].sums.deal(lease_of(replica, machines[1], roster), roster)
    machines[1].terms = Secure()
    machines[1].start()
    group = Group(roster)
    for machine in machines:
        machine.sums.deal(lease_of(replica, machine, roster), roster)
        group.add_deal(machine.name, machine.last("shares"))
    group.close_dealing()
    one, vectors = machines[0], vectors_of(machines, roster.segments)
    lease = lease_of(replica, one, roster, SumStage.MASK)
    assert lease.sum is not None
    one.delivery = group.delivery(one.name)
    one.sums.accept(lease, lease.sum)
    one.sums.keep(one.sums.mask(lease, replica, vectors[one.name]))
    with refused("secure.closed", "no longer has"):
        one.sums.accept(lease, lease.sum)
    names = [machine.name for machine in machines]
    with refused("secure.peers_unknown"):  # the pinned peer is left out
        one.sums.take(step_of(roster, SumStage.AGREE, [names[0], *names[2:]]))
    assert not one.sums.take(step_of(roster, SumStage.AGREE, names)), "the server is not answered again"
    one.start()
    assert one.sums.take(step_of(roster, SumStage.AGREE, names))
    with refused("secure.conflict"):
        one.sums.take(step_of(roster, SumStage.RELEASE, names[:4], b""))
    one.start()
    with refused("secure.too_few"):
        one.sums.take(step_of(roster, SumStage.RELEASE, names, b""))
    assert [name for name, _ in one.sent].count("survivors") == 2  # once more with the release, the same one
    assert "unmask" not in [name for name, _ in one.sent]


def test_a_site_is_no_peer_of_itself(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "site-1")
    machine.terms = Secure(peers=[public_key(machine.identity)], peers_required=1)
    with refused("terms.invalid", "no peer of itself"):
        machine.start()
