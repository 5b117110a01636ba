"""The stages of a secure sum over HTTP, with members that keep their own secrets, on both databases."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pytest

from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.signatures import Signed, new_key, public_key, sign
from ferret_core.protocol.states import ParticipantKind, RoundState, SumStage
from ferret_core.rounds import sampling
from ferret_core.secure.member import Member
from ferret_core.secure.packing import Segment, Vector
from ferret_core.secure.prekeys import Prekey, PrekeyStatement
from ferret_core.secure.roster import Roster
from ferret_core.storage import FileKind, blob_location
from ferret_db.engine import rounds, secure_sums
from ferret_db.repositories import assignments, participants
from ferret_db.repositories import secure_sums as stock
from ferret_db.tables import Round
from tests.api.conftest import ASSIGNMENT, BASE_DIGEST, open_site, spec
from tests.ferret_core.secure.groups import ORIGIN, SEGMENTS, as_lists, total, vectors_of
from tests.ferret_core.secure.groups import Site as Secrets

OCTETS = {"Content-Type": "application/octet-stream"}
MASKED = {
    "secure": {"aggregation": "masked"},
    "algorithm": {"name": "ferret", "seeds": "shared", "allocation": "fixed", "K": 8},
    "round": {"quorum": 0.5},
}


class Client(Secrets):
    """A participant of the service with its secrets, its lease and its token."""

    def __init__(self, site: Any, experiment_id: str, name: str) -> None:
        super().__init__(name, keys=8)
        with site.database.begin() as s:
            _, code = participants.create_enrolment(s, experiment_id, 60)
            token = participants.enrol(s, code, name, public_key(self.identity))[1]
        self.http, self.experiment = site.client(token), experiment_id
        self.lease: dict[str, Any] = {}

    def poll(self) -> dict[str, Any]:
        answer = self.http.get(ASSIGNMENT).json()
        self.lease = answer["assignment"] or self.lease
        return answer

    def put(self, message: str, content: bytes, lease: str | None = None) -> Any:
        headers = OCTETS | {"Ferret-Fence": str(self.lease["fence"])}
        path = f"/api/v1/participant/assignments/{lease or self.lease['id']}/{message}"
        return self.http.put(path, content=content, headers=headers)

    def restock(self) -> Any:
        keys = self.member.prekeys(self.experiment, self.identity)
        return self.http.put(
            "/api/v1/participant/prekeys", content=b"".join(key.encode() for key in keys), headers=OCTETS
        )

    def deal(self) -> Any:
        assert self.poll()["assignment"]["sum"]["stage"] == "deal"
        roster = Roster.model_validate(self.lease["sum"]["roster"])
        return self.put("shares", self.join(roster))

    def send(self, vector: Any) -> Any:
        assert self.poll()["assignment"]["sum"]["stage"] == "mask"
        path = f"/api/v1/participant/assignments/{self.lease['id']}"
        self.accept(self.http.get(f"{path}/shares").content)
        return self.upload(self.mask(vector))

    def upload(self, masked: bytes) -> Any:
        task, digest = self.lease["task"], digest_bytes(masked)
        signed = Signed(self.experiment, task["round"], self.name, task["base_digest"], self.lease["id"], digest)
        headers = {"Ferret-Fence": str(self.lease["fence"]), "Ferret-Seconds": "0"}
        headers |= OCTETS | {"Ferret-Signature": sign(self.identity, signed)}
        return self.http.put(
            f"/api/v1/participant/assignments/{self.lease['id']}/contribution", content=masked, headers=headers
        )

    def sign(self) -> Any:
        step = self.poll()["step"]
        assert step["stage"] == "agree"
        return self.put("survivors", self.agree(step["survivors"]), step["assignment"])

    def open(self) -> Any:
        step = self.poll()["step"]
        assert step["stage"] == "release"
        self.agree(step["survivors"])
        return self.put("unmask", self.release(bytes.fromhex(step["signatures"])), step["assignment"])


class Sums:
    """A round of a running experiment that is a secure sum of these clients, in ``groups``."""

    def __init__(self, site: Any, count: int, groups: int = 1, segments: Sequence[Segment] = SEGMENTS) -> None:
        self.site, self._groups, self._segments = site, groups, segments
        self.experiment = site.running(participants={"edge": count, "simulated": 0}, **MASKED)
        self.clients = [Client(site, self.experiment, f"site-{number}") for number in range(1, count + 1)]
        for client in self.clients:
            assert client.restock().status_code == 204
        self.open_round()

    def open_round(self) -> None:
        with self.site.database.begin() as s:
            keys = stock.stocked(s, self.experiment)
            ids = {row.name: row.id for row in participants.of_experiment(s, self.experiment)}
            tasks = sampling.round_tasks(spec(), self.experiment, 1, [*keys], BASE_DIGEST)
            work = [(task, ParticipantKind.EDGE, ids[task.participant]) for task in tasks]
            self.rosters = [
                Roster(
                    origin=ORIGIN.model_copy(update={"experiment": self.experiment}),
                    group=place + 1,
                    members=tuple(keys.values())[place :: self._groups],
                    least=3,
                    colluders=1,
                    segments=tuple(self._segments),
                )
                for place in range(self._groups)
            ]
            self.round_id = rounds.open_round(s, self.experiment, 1, work, 600, 0, rosters=self.rosters).id

    @property
    def roster(self) -> Roster:
        (only,) = self.rosters
        return only

    @property
    def round(self) -> Round:
        with self.site.database.read() as s:
            return rounds.round_rows.get(s, self.round_id)

    def pass_time(self, column: str) -> None:
        """Ends the stage or the round, as the reconciler would find it."""
        self.site.expire(Round, column, self.round_id, 10_000)
        with self.site.database.begin() as s:
            rounds.freeze_if_due(s, self.round_id)
            secure_sums.end_if_overdue(s, self.round_id)

    def to_masks(self, silent: Collection[str] = ()) -> dict[str, Any]:
        """All but the silent clients deal and send their vectors; returns the vectors."""
        for client in self.clients:
            assert client.deal().status_code == 204
        vectors = vectors_of(self.clients)
        for client in self.clients:
            if client.name not in silent:
                assert client.send(vectors[client.name]).status_code == 201
        return vectors

    def sums(self) -> list[Vector]:
        with self.site.database.read() as s:
            groups = secure_sums.groups_of(s, self.round)
            sent = {row.participant: row.digest for row in rounds.contributions.of_round(s, self.round_id)}
        read = self.site.context.storage.read
        masked = {name: read(blob_location(FileKind.CONTRIBUTION, each), each) for name, each in sent.items()}
        return [group.transcript().sum(masked) for group in groups]


def refused(answer: Any, status: int, code: str) -> str:
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    return str(answer.json()["errors"][0]["value"])


def test_a_sum_goes_on_without_those_that_drop_out_and_every_message_has_its_stage(either_site: Any) -> None:
    """Seven members: one is silent before its deal, one after."""
    sums = Sums(either_site, 7)
    *five, late, silent = sums.clients
    for client in (*five, late):
        assert client.deal().status_code == 204
    assert late.poll()["assignment"] is None, "it has dealt, and others have not"
    assert refused(late.upload(b"x"), 410, "secure.closed") == late.name
    silent.poll()
    assert sums.round.stage == SumStage.DEAL
    sums.pass_time("stage_until")
    assert sums.round.stage == SumStage.MASK
    refused(silent.put("shares", silent.join(sums.roster)), 410, "secure.closed")
    assert late.put("shares", late.member.message).status_code == 204, "the same deal again"
    vectors = vectors_of(sums.clients)
    late.poll()
    assert "errors" in late.upload(b"short").json()
    for client in five:
        assert client.send(vectors[client.name]).status_code == 201
    sums.pass_time("deadline_at")
    assert (sums.round.state, sums.round.stage) == (RoundState.FROZEN, SumStage.AGREE)
    assert late.poll().get("step") is None
    one = five[0]
    assert refused(one.put("survivors", bytes(64)), 422, "secure.survivors_invalid") == one.name
    for client in five:
        assert client.sign().status_code == 204
        assert client.poll().get("step") is None or client is five[-1]
    assert sums.round.stage == SumStage.RELEASE
    wrong = bytes(33 * 6)
    assert refused(one.put("unmask", wrong), 422, "secure.shares_invalid") == one.name
    for client in five:
        assert client.open().status_code == 204
    listed = either_site.admin.get(f"/api/v1/experiments/{sums.experiment}/rejections").json()["items"]
    assert [each["code"] for each in listed if each["participant"] == one.name] == [
        "secure.shares_invalid",
        "secure.survivors_invalid",
    ]
    assert sums.round.stage == SumStage.SUM
    assert one.put("unmask", one.member.message).status_code == 204, "the same shares again"
    assert [as_lists(one) for one in sums.sums()] == [total(vectors, [client.name for client in five])]


def test_nobody_deals_for_vectors_that_the_service_does_not_take(make_settings: Any) -> None:
    with open_site(make_settings(max_upload_bytes=1 << 20)) as site:
        sums = Sums(site, 3, segments=[Segment(1 << 20, 2**30)])
        answer = sums.clients[0].deal()
        assert (answer.status_code, answer.json()["code"]) == (413, "request.too_large")
        assert "FERRET_MAX_UPLOAD_BYTES" in answer.json()["detail"]
        with site.database.read() as s:
            assert not stock.senders(s, sums.round_id, SumStage.DEAL)


def test_a_stage_ends_once_every_group_has_enough_messages(site: Any) -> None:
    sums = Sums(site, 6, groups=2)
    vectors = sums.to_masks()
    first, second = ([each for each in sums.clients if each.name in roster.names] for roster in sums.rosters)
    for client in first:
        assert client.sign().status_code == 204
    assert sums.round.stage == SumStage.AGREE
    for client in second:
        assert client.sign().status_code == 204
    assert sums.round.stage == SumStage.RELEASE
    for client in second:
        assert client.open().status_code == 204
    assert sums.round.stage == SumStage.RELEASE
    for client in first:
        assert client.open().status_code == 204
    assert sums.round.stage == SumStage.SUM
    assert [as_lists(one) for one in sums.sums()] == [total(vectors, roster.names) for roster in sums.rosters]


def test_a_group_with_too_few_messages_ends_the_attempt(site: Any) -> None:
    sums = Sums(site, 6, groups=2)
    sums.to_masks()
    for client in sums.clients:
        if client.name in sums.rosters[0].names:
            client.sign()
    sums.pass_time("stage_until")
    assert sums.round.state == RoundState.ABANDONED
    assert "signatures = 0: arrived from group 2" in (sums.round.error or {})["detail"]


def test_a_deal_counts_once_and_is_signed_for_the_rounds_roster(either_site: Any) -> None:
    sums = Sums(either_site, 3)
    one, two, _ = sums.clients
    assert one.deal().status_code == 204
    two.poll()
    assert refused(two.put("shares", one.member.message), 422, "secure.shares_invalid") == two.name
    other = bytearray(one.member.message)
    other[-1] ^= 1
    assert refused(one.put("shares", bytes(other)), 409, "secure.conflict") == one.name


@pytest.mark.parametrize("stage", [SumStage.DEAL, SumStage.AGREE, SumStage.RELEASE])
def test_a_stage_without_enough_messages_ends_the_attempt_and_another_has_new_keys(site: Any, stage: SumStage) -> None:
    sums = Sums(site, 3)
    first, *_ = sums.clients
    if stage == SumStage.DEAL:
        first.deal()
    else:
        sums.to_masks()
        for client in sums.clients if stage == SumStage.RELEASE else [first]:
            client.sign()
    assert sums.round.stage == stage
    sums.pass_time("stage_until")
    ended, roster = sums.round, sums.roster
    assert ended.state == RoundState.ABANDONED
    assert (ended.error or {})["code"] == "secure.too_few"
    with site.database.read() as s:
        assert not any(stock.senders(s, ended.id, kind) for kind in SumStage)
        silent = {"site-2", "site-3"} if stage == SumStage.DEAL else set()
        assert assignments.sitting_out(s, sums.experiment, 1, 2) == silent
    sums.open_round()
    assert not {each.mask for each in roster.members} & {each.mask for each in sums.roster.members}


def test_a_pause_gives_a_stage_its_time_again(site: Any) -> None:
    sums = Sums(site, 3)
    site.expire(Round, "stage_until", sums.round_id, 10_000)
    site.move(sums.experiment, "pause")
    site.move(sums.experiment, "resume")
    with site.database.begin() as s:
        rounds.freeze_if_due(s, sums.round_id)
    assert sums.round.state == RoundState.OPEN


def test_one_time_keys_are_signed_and_offered_once(site: Any) -> None:
    sums = Sums(site, 3)
    one, two, _ = sums.clients
    assert one.poll()["prekeys"] == 7
    assert one.restock().status_code == 204
    assert one.poll()["prekeys"] == 7, "the roster's key is not unused again"
    one.member = Member(name=one.name).stocked(2)
    one.restock()
    assert one.poll()["prekeys"] == 2, "keys of a lost state are gone"
    keys = two.member.prekeys(sums.experiment, two.identity)
    for wrong in (b"".join(key.encode() for key in keys)[:-1], forged(keys[0]).encode()):
        answer = two.http.put("/api/v1/participant/prekeys", content=wrong, headers=OCTETS)
        refused(answer, 422, "secure.roster_invalid")
    plain = site.running(participants={"edge": 1, "simulated": 1})
    stranger = site.client(site.enrol(plain))
    assert refused(stranger.put("/api/v1/participant/prekeys", content=b"", headers=OCTETS), 410, "secure.closed")
    assert stranger.get(ASSIGNMENT).json().get("prekeys") is None


def test_a_one_time_key_of_another_participant_is_refused(site: Any) -> None:
    """Two sites with one key make an invalid roster, in which nobody else could take part."""
    sums = Sums(site, 3)
    one, two, _ = sums.clients
    (theirs,) = one.member.prekeys(sums.experiment, one.identity)[:1]
    own = two.member.prekeys(sums.experiment, two.identity)[0]
    for mask, share in ((theirs.mask, own.share), (own.mask, theirs.share)):
        statement = PrekeyStatement(sums.experiment, two.name, mask, share)
        copied = Prekey(mask=mask, share=share, signature=sign(two.identity, statement))
        answer = two.http.put("/api/v1/participant/prekeys", content=copied.encode(), headers=OCTETS)
        refused(answer, 422, "secure.roster_invalid")


def test_a_site_that_waits_for_approval_needs_no_keys(site: Any) -> None:
    experiment = site.running(participants={"edge": 3, "simulated": 0, "approval": True}, **MASKED)
    client = Client(site, experiment, "site-1")
    assert "prekeys" not in client.poll()
    assert client.restock().status_code == 403
    site.admin.post(f"/api/v1/experiments/{experiment}/participants/site-1:approve")
    assert client.poll()["prekeys"] == 0


def forged(key: Prekey) -> Prekey:
    return Prekey(mask=key.mask, share=key.share, signature="00" * 64)


def test_a_site_has_one_key_and_counts_once(site: Any) -> None:
    experiment_id = site.running(participants={"edge": 3, "simulated": 0}, **MASKED)
    own = public_key(new_key())

    def enrol(**body: Any) -> Any:
        code = site.admin.post(f"/api/v1/experiments/{experiment_id}/enrolments", json={}).json()["code"]
        return site.client().post("/api/v1/participants", json={"code": code, **body})

    assert enrol(display_name="one", public_key=own).status_code == 201
    for body in ({"display_name": "two", "public_key": own}, {"display_name": "two"}):
        answer = enrol(**body)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "public_key")


def test_messages_are_the_members_own(site: Any) -> None:
    sums = Sums(site, 3)
    one, two, _ = sums.clients
    one.poll()
    two.poll()
    for message in ("shares", "survivors", "unmask"):
        assert two.put(message, b"", one.lease["id"]).status_code == 404
    assert site.client().put("/api/v1/participant/prekeys", content=b"", headers=OCTETS).status_code == 401
