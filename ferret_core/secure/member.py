"""A member's side of secure sums: a state that each step replaces by the next.

``join`` → ``accept`` → ``mask`` → ``agree`` → ``release``. The state is a model of JSON. **Write each new state to disk
durably before you send what came with it**, and never restore an older one. No step is taken twice: after a restart,
:attr:`Member.message` is still there to be sent.

The two shares of one dealer are never both released, because a state keeps only what later steps need. ``accept``
erases the key that decrypts shares, ``mask`` the member's own secrets, and ``agree`` one of the two shares of each
dealer, before any share is sent.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeVar

from pydantic import ConfigDict, Field

from ferret_core.protocol.buffers import Pieces
from ferret_core.protocol.digest import canonical_json, digest_pieces
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.ids import Digest, ParticipantName, PublicKey, SecretKey, SignatureText
from ferret_core.protocol.limits import MAX_ROUNDS
from ferret_core.protocol.signatures import is_valid, public_key, sign
from ferret_core.protocol.spec import StrictModel
from ferret_core.secure.masks import MaskSum, self_key
from ferret_core.secure.packing import Entries
from ferret_core.secure.prekeys import Prekey, PrekeySecret, public_half
from ferret_core.secure.roster import LEAST_MEMBERS, MOST_MEMBERS, Origin, Roster, in_order, invalid
from ferret_core.secure.shares import (
    SIGNATURE_BYTES,
    Kind,
    SharePair,
    make_deal,
    open_part,
    part_size,
)

PURPOSE = "ferret.secure.survivors.1"
STOCK = 8
"""One-time keys that a site keeps at its server."""
Names = tuple[ParticipantName, ...]
Share = Annotated[str, Field(pattern="^[0-9a-f]{66}$", repr=False)]


class SurvivorStatement(NamedTuple):
    """A member's signed statement: it accepts this list of survivors, and that the others dropped out.

    Both are in the roster's order.
    """

    context: str
    survivors: tuple[str, ...]
    dropped: tuple[str, ...]

    def message(self) -> bytes:
        return canonical_json({"purpose": PURPOSE, **self._asdict()})


class Demands(StrictModel):
    """A site's demands on a group: at least ``least`` survivors, ``peers_required`` of them with an identity of
    ``peers``."""

    least: int = Field(default=LEAST_MEMBERS, ge=LEAST_MEMBERS, le=MOST_MEMBERS)
    peers: tuple[PublicKey, ...] = Field(default=(), max_length=1000)
    peers_required: int = Field(default=0, ge=0, le=MOST_MEMBERS)


class DealerShares(StrictModel):
    """The member's shares of one dealer's two secrets."""

    dealer: ParticipantName
    seed: Share
    mask: Share


class ChosenShare(StrictModel):
    """The share of one dealer that the member will release; the other is erased."""

    dealer: ParticipantName
    kind: Kind
    share: Share


class _Stage(StrictModel):
    roster: Roster
    demands: Demands

    @property
    def least(self) -> int:
        return max(self.roster.needed, self.demands.least)


Stage = TypeVar("Stage", bound=_Stage)


class Dealt(_Stage):
    """The deal can be sent."""

    stage: Literal["dealt"] = "dealt"
    keys: PrekeySecret = Field(repr=False)
    seed: SecretKey = Field(repr=False)
    own: DealerShares
    deal: str


class Ready(_Stage):
    """All shares have arrived; the vectors have masks between their dealers, the member included."""

    stage: Literal["ready"] = "ready"
    mask: SecretKey = Field(repr=False)
    seed: SecretKey = Field(repr=False)
    shares: tuple[DealerShares, ...]


class Masked(_Stage):
    """The masked vector with this digest, and no other, can be sent."""

    stage: Literal["masked"] = "masked"
    masked: Digest
    shares: tuple[DealerShares, ...]


class Agreed(_Stage):
    """The signature of the survivors can be sent. One share of each dealer is left."""

    stage: Literal["agreed"] = "agreed"
    survivors: Names
    signature: SignatureText
    shares: tuple[ChosenShare, ...]


class Released(_Stage):
    """The shares can be sent."""

    stage: Literal["released"] = "released"
    survivors: Names
    shares: str = Field(repr=False)


class Agreement(StrictModel):
    """A past list of survivors: a sum over them may be known."""

    round: int = Field(ge=1, le=MAX_ROUNDS)
    survivors: Names


class Member(StrictModel):
    """The secret state of the participant ``name`` in an experiment.

    ``keys`` are its unused one-time keys, ``newest`` the latest round that it joined, ``agreements`` its lists of that
    round.
    """

    model_config = ConfigDict(hide_input_in_errors=True)

    name: ParticipantName
    keys: tuple[PrekeySecret, ...] = ()
    newest: int = Field(default=0, ge=0, le=MAX_ROUNDS)
    attempt: Annotated[Dealt | Ready | Masked | Agreed | Released, Field(discriminator="stage")] | None = None
    agreements: tuple[Agreement, ...] = ()

    def stocked(self, count: int = STOCK) -> Self:
        """Returns the state with ``count`` unused keys."""
        more = (PrekeySecret.new() for _ in range(count - len(self.keys)))
        return self.model_copy(update={"keys": (*self.keys, *more)})

    def prekeys(self, experiment: str, identity: str) -> list[Prekey]:
        """Returns the public halves of the unused keys, signed with the Ed25519 secret ``identity``."""
        return [keys.prekey(experiment, self.name, identity) for keys in self.keys]

    @property
    def message(self) -> bytes:
        """The message of the stage: the deal, the signature or the shares; raises ``secure.closed`` in other stages."""
        match self.attempt:
            case Dealt():
                return bytes.fromhex(self.attempt.deal)
            case Agreed():
                return bytes.fromhex(self.attempt.signature)
            case Released():
                return bytes.fromhex(self.attempt.shares)
            case _:
                raise self._closed("has no message of this stage")

    def join(self, roster: Roster, origin: Origin, identity: str, demands: Demands | None = None) -> Self:
        """Takes a one-time key and deals. A second call with the same roster changes nothing; another roster ends the
        current attempt.

        ``origin`` is what the site itself knows of the round, ``identity`` its Ed25519 secret. Raises
        ``secure.roster_invalid`` for a roster with a flaw, another origin, or a key that is used or unknown;
        ``secure.too_few`` and ``secure.peers_unknown`` for a group below the ``demands``; ``secure.conflict`` for an
        earlier round, and for a group without some of the survivors that the member has agreed on in this round, if it
        differs by fewer than ``least`` members: the two sums would reveal the sum of these few.
        """
        if self.attempt is not None and self.attempt.roster.context == roster.context:
            return self
        demands = demands or Demands()
        _require_origin(roster, origin)
        roster.verify()
        keys = self._keys_in(roster, identity)
        past = self._past(origin.round)
        if len(roster.members) < demands.least:
            raise _too_few("members", len(roster.members), f"the site demands {demands.least}")
        _require_peers(roster, roster.names, self.name, demands)
        left_out = [each for each in past if not {*each.survivors} <= {*roster.names}]
        _require_apart(left_out, roster.names, max(roster.least, demands.least))
        seed = secrets.token_hex(32)
        deal, own = make_deal(roster, self.name, keys, seed, identity)
        attempt = Dealt(
            roster=roster, demands=demands, keys=keys, seed=seed, own=_held(self.name, own), deal=deal.encode().hex()
        )
        left = tuple(each for each in self.keys if each != keys)
        return self._with(attempt, keys=left, newest=origin.round, agreements=past)

    def accept(self, delivery: bytes) -> Self:
        """Opens the shares of the other dealers: place ‖ part of the deal, for each.

        Raises ``secure.shares_invalid``, naming the dealer, and ``secure.too_few``.
        """
        attempt = self._in(Dealt)
        roster, shares = attempt.roster, {self.name: attempt.own}
        for dealer, part in self._parts(roster, delivery):
            pair = open_part(part, roster, dealer, self.name, attempt.keys)
            shares[dealer] = _held(dealer, pair)
        if len(shares) < attempt.least:
            raise _too_few("dealers", len(shares), f"the sum needs {attempt.least}")
        held = tuple(shares[name] for name in in_order(roster, shares))
        mask, seed = attempt.keys.mask, attempt.seed
        return self._with(Ready(roster=roster, demands=attempt.demands, mask=mask, seed=seed, shares=held))

    def mask(self, vector: Sequence[Entries]) -> tuple[Self, Pieces]:
        """Masks the vector, the integers of each segment of the roster; returns the new state and the bytes to send,
        which the state does not keep.

        Raises ``secure.out_of_range`` for an entry outside its segment's range.
        """
        attempt = self._in(Ready)
        roster, masks = attempt.roster, MaskSum()
        masks.add(self_key(attempt.seed, roster.context))
        own = roster.member(self.name).mask
        peers = [roster.member(each.dealer).mask for each in attempt.shares if each.dealer != self.name]
        masks.add_pairs(roster.context, attempt.mask, own, peers)
        packed = roster.layout.pack(vector, masks)
        digest = digest_pieces(packed)
        masked = Masked(roster=roster, demands=attempt.demands, masked=digest, shares=attempt.shares)
        return self._with(masked), packed

    def agree(self, survivors: Collection[str], identity: str) -> Self:
        """Accepts and signs the list of survivors, and erases the other share of each dealer. A second call with the
        same list changes nothing.

        Raises ``secure.conflict`` for another list than before, and for one that differs by fewer than ``least`` from
        an earlier one of the round; ``secure.survivors_invalid`` for a list without the member, with strangers or with
        too few; ``secure.peers_unknown``.
        """
        if isinstance(self.attempt, Agreed | Released):
            if set(survivors) != set(self.attempt.survivors):
                message = f"this member has agreed on {', '.join(self.attempt.survivors)}, and agrees once"
                raise FerretError.of_field("secure.conflict", "survivors", sorted(survivors), message)
            return self
        attempt = self._in(Masked)
        roster, demands = attempt.roster, attempt.demands
        kept = self._survivors(attempt, survivors)
        _require_peers(roster, kept, self.name, demands)
        _require_apart(self.agreements, kept, max(roster.least, demands.least))
        shares = tuple(_chosen(each, "seed" if each.dealer in kept else "mask") for each in attempt.shares)
        dropped = tuple(each.dealer for each in attempt.shares if each.dealer not in kept)
        signature = sign(identity, SurvivorStatement(roster.context, kept, dropped))
        agreed = Agreed(roster=roster, demands=demands, survivors=kept, signature=signature, shares=shares)
        agreements = (*self.agreements, Agreement(round=roster.origin.round, survivors=kept))
        return self._with(agreed, agreements=agreements)

    def release(self, signatures: bytes) -> Self:
        """Releases the shares once a threshold of survivors has signed the same list: place ‖ signature, for each.

        Raises ``secure.survivors_invalid``, naming who did not sign this list, and ``secure.too_few``.
        """
        if isinstance(self.attempt, Released):
            return self
        attempt = self._in(Agreed)
        roster, survivors = attempt.roster, attempt.survivors
        dropped = tuple(each.dealer for each in attempt.shares if each.kind == "mask")
        statement = SurvivorStatement(roster.context, survivors, dropped)
        signers = require_agreement(roster, statement, decode_signatures(roster, signatures))
        if len(signers) < roster.threshold:
            raise _too_few("signatures", len(signers), f"{roster.threshold} survivors must sign the same list")
        shares = "".join(each.share for each in attempt.shares)
        return self._with(Released(roster=roster, demands=attempt.demands, survivors=survivors, shares=shares))

    def end(self) -> Self:
        """Erases the attempt: its sum is recorded, or it is given up."""
        return self._with(None)

    def _with(self, attempt: _Stage | None, **changes: Any) -> Self:
        return self.model_copy(update={"attempt": attempt, **changes})

    def _in(self, stage: type[Stage]) -> Stage:
        if not isinstance(self.attempt, stage):
            raise self._closed(f"this step follows {stage.__name__.lower()!r}")
        return self.attempt

    def _closed(self, message: str) -> FerretError:
        stage = self.attempt.stage if self.attempt is not None else None
        return FerretError.of_field("secure.closed", "stage", stage, message)

    def _keys_in(self, roster: Roster, identity: str) -> PrekeySecret:
        own = roster.member(self.name)
        if own.identity != public_key(identity):
            raise invalid("participant", self.name, "has another identity than this site's")
        for keys in self.keys:
            if (public_half(keys.mask), public_half(keys.share)) == (own.mask, own.share):
                return keys
        raise invalid("participant", self.name, "has a one-time key that this site used before or never made")

    def _past(self, round_number: int) -> tuple[Agreement, ...]:
        if round_number < self.newest:
            message = f"this member has joined round {self.newest}, and joins no earlier one: clone the experiment"
            raise FerretError.of_field("secure.conflict", "round", round_number, message)
        return tuple(each for each in self.agreements if each.round == round_number)

    def _parts(self, roster: Roster, delivery: bytes) -> list[tuple[str, bytes]]:
        """Splits a delivery into dealers, in the roster's order, and their parts."""
        own, size = roster.place(self.name), 1 + part_size(len(roster.members), roster.place(self.name))
        entries = [delivery[begin : begin + size] for begin in range(0, len(delivery), size)]
        places = [entry[0] for entry in entries]
        if len(delivery) % size or places != sorted({*places} - {own}) or max(places, default=0) >= len(roster.members):
            message = f"expected {size} bytes for each other dealer, in the roster's order"
            raise FerretError.of_field("secure.shares_invalid", "delivery", len(delivery), message)
        return [(roster.names[entry[0]], entry[1:]) for entry in entries]

    def _survivors(self, attempt: Masked, names: Collection[str]) -> tuple[str, ...]:
        dealers = {each.dealer for each in attempt.shares}
        for name in sorted({*names} - dealers):
            raise survivors_invalid(name, "is no dealer of this attempt")
        if self.name not in names:
            raise survivors_invalid(self.name, "is missing, and this site's vector would be left out")
        kept = in_order(attempt.roster, names)
        if len(kept) != len(names) or len(kept) < attempt.least:
            message = f"survived, each counted once; the sum needs {attempt.least}"
            raise FerretError.of_field("secure.survivors_invalid", "survivors", len(kept), message)
        return kept


def decode_signatures(roster: Roster, data: bytes) -> dict[str, str]:
    """Returns the signatures by member: place ‖ 64 bytes for each; raises ``secure.survivors_invalid``."""
    size = 1 + SIGNATURE_BYTES
    entries = [data[begin : begin + size] for begin in range(0, len(data), size)]
    places = [entry[0] for entry in entries]
    if len(data) % size or places != sorted({*places}) or max(places, default=0) >= len(roster.members):
        message = f"expected {size} bytes for each signer, in the roster's order"
        raise FerretError.of_field("secure.survivors_invalid", "signatures", len(data), message)
    return {roster.names[entry[0]]: entry[1:].hex() for entry in entries}


def encode_signatures(roster: Roster, signatures: dict[str, str]) -> bytes:
    """Encodes the signatures, in the roster's order."""
    signers = in_order(roster, signatures)
    return b"".join(bytes([roster.place(name)]) + bytes.fromhex(signatures[name]) for name in signers)


def require_agreement(roster: Roster, statement: SurvivorStatement, signatures: dict[str, str]) -> tuple[str, ...]:
    """Returns the signers; raises ``secure.survivors_invalid``, naming a signer that is not a survivor or has no valid
    signature of this list."""
    for name, signature in signatures.items():
        if name not in statement.survivors:
            raise survivors_invalid(name, "signed the list, and is not one of its survivors")
        if not is_valid(roster.member(name).identity, signature, statement):
            raise survivors_invalid(name, "has no valid signature of this list of survivors and dropouts")
    return in_order(roster, signatures)


def survivors_invalid(participant: str, message: str) -> FerretError:
    return FerretError.of_field("secure.survivors_invalid", "participant", participant, message)


def _held(dealer: str, pair: SharePair) -> DealerShares:
    return DealerShares(dealer=dealer, seed=pair.seed.hex(), mask=pair.mask.hex())


def _chosen(shares: DealerShares, kind: Kind) -> ChosenShare:
    return ChosenShare(dealer=shares.dealer, kind=kind, share=getattr(shares, kind))


def _too_few(field: str, value: int, message: str) -> FerretError:
    return FerretError.of_field("secure.too_few", field, value, f"{message}: wait for others, or join another group")


def _require_origin(roster: Roster, origin: Origin) -> None:
    for field, own in origin.model_dump().items():
        if (shown := getattr(roster.origin, field)) != own:
            raise invalid(f"origin.{field}", shown, f"this site has {own!r}")


def _require_peers(roster: Roster, names: Collection[str], own: str, demands: Demands) -> None:
    """Raises ``secure.peers_unknown`` for too few members, among ``names``, that the site has pinned."""
    known = [name for name in names if name != own and roster.member(name).identity in demands.peers]
    if len(known) < demands.peers_required:
        message = f"of the peers that this site has pinned are there; it demands {demands.peers_required}"
        raise FerretError.of_field("secure.peers_unknown", "peers", len(known), message)


def _require_apart(past: Sequence[Agreement], names: Collection[str], least: int) -> None:
    """Raises ``secure.conflict`` for names that differ by fewer than ``least`` from survivors of the same round."""
    for agreement in past:
        differing = sorted({*names} ^ {*agreement.survivors})
        if 0 < len(differing) < least:
            message = (
                f"alone differ from a sum of round {agreement.round} that this site took part in: their sum would show"
            )
            raise FerretError.of_field("secure.conflict", "participants", differing, message)
