"""A server's side of one secure sum: it collects each stage's messages, checks them, and passes them on.

The server keeps no secret. A service that restarts adds the stored messages again, in the order of the stages.
"""

from __future__ import annotations

from collections.abc import Collection

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.signatures import is_valid
from ferret_core.secure import shamir
from ferret_core.secure.member import SurvivorStatement, encode_signatures, survivors_invalid
from ferret_core.secure.packing import Vector
from ferret_core.secure.prekeys import public_half
from ferret_core.secure.roster import Roster, in_order
from ferret_core.secure.shamir import SHARE_BYTES
from ferret_core.secure.shares import Deal, Kind, commitment_to, wrong_shares
from ferret_core.secure.transcript import DealRecord, Opening, SurvivorSignature, Transcript


class Group:
    """The messages of a group. ``dealers`` is None until all deals are in, ``survivors`` until all vectors are.

    A message of a later or earlier stage raises ``secure.closed``, a second one that differs ``secure.conflict``; the
    same one again changes nothing.
    """

    def __init__(self, roster: Roster) -> None:
        roster.verify()
        self.roster = roster
        self.dealers: tuple[str, ...] | None = None
        self.survivors: tuple[str, ...] | None = None
        self._deals: dict[str, Deal] = {}
        self._masked: dict[str, bytes] = {}
        self._signatures: dict[str, str] = {}
        self._shares: dict[str, bytes] = {}

    def add_deal(self, name: str, message: bytes) -> None:
        """Raises ``secure.shares_invalid``, naming the dealer, for a deal that it did not sign for this roster."""
        deal = Deal.decode(message, self.roster, name)
        known = self._deals.get(name)
        if known is None:
            self._require(self.dealers is None, "deal", name)
            self._deals[name] = deal
        elif known.encode() != message:
            raise _conflict(name, "has sent another deal before")

    def close_dealing(self) -> tuple[str, ...]:
        """Fixes the dealers; raises ``secure.too_few``."""
        if self.dealers is None:
            self.dealers = self._enough("dealers", self._deals)
        return self.dealers

    def delivery(self, name: str) -> bytes:
        """Returns the parts of the other dealers' deals for a dealer: place ‖ part, for each."""
        self._require(name in (self.dealers or ()), "request for shares", name)
        place = self.roster.place(name)
        others = [dealer for dealer in self.dealers or () if dealer != name]
        return b"".join(bytes([self.roster.place(each)]) + self._deals[each].part(place) for each in others)

    def add_masked(self, name: str, masked: bytes) -> None:
        """Raises ``contribution.malformed`` for bytes other than a vector of this group."""
        self._require(name in (self.dealers or ()), "masked vector", name)
        known = self._masked.get(name)
        if known is None:
            self._require(self.survivors is None, "masked vector", name)
            self.roster.layout.check(masked)
            self._masked[name] = masked
        elif known != masked:
            raise _conflict(name, "has sent another masked vector before")

    def close_masking(self) -> tuple[str, ...]:
        """Fixes the survivors; raises ``secure.too_few``."""
        if self.survivors is None:
            self.survivors = self._enough("survivors", self._masked)
        return self.survivors

    @property
    def dropped(self) -> tuple[str, ...]:
        """The dealers that did not survive."""
        return tuple(name for name in self.dealers or () if name not in (self.survivors or ()))

    def add_signature(self, name: str, signature: bytes) -> None:
        """Raises ``secure.survivors_invalid``, naming the member, for a signature of another list."""
        self._require(name in (self.survivors or ()), "signature", name)
        if not is_valid(self.roster.member(name).identity, signature.hex(), self._statement):
            raise survivors_invalid(name, "did not sign this list of survivors and dropouts")
        self._signatures[name] = signature.hex()

    def signatures(self) -> bytes:
        """Returns the signatures so far: place ‖ signature, for each; raises ``secure.too_few`` below the threshold."""
        self._reached("signatures", self._signatures)
        return encode_signatures(self.roster, self._signatures)

    def add_shares(self, name: str, message: bytes) -> None:
        """Raises ``secure.shares_invalid``, naming the member, for a share other than the one dealt to it."""
        self._require(name in (self.survivors or ()), "release of shares", name)
        dealers = self.dealers or ()
        if len(message) != SHARE_BYTES * len(dealers):
            raise wrong_shares(name, f"released {len(message)} bytes of shares, not {SHARE_BYTES * len(dealers)}")
        for place, dealer in enumerate(dealers):
            self._deals[dealer].check(self.roster, dealer, name, self._kind(dealer), _at(message, place))
        self._shares[name] = message

    def transcript(self) -> Transcript:
        """Combines the shares.

        Raises ``secure.too_few`` for fewer releases than the threshold, and ``secure.shares_invalid``, naming the
        dealer, if valid shares do not give the secret of its commitment or key.
        """
        dealers, survivors = self.dealers or (), self.survivors or ()
        holders = self._reached("releases", self._shares)[: self.roster.threshold]
        weights = shamir.weights([self.roster.place(name) + 1 for name in holders])
        secrets = dict[str, str]()
        for place, dealer in enumerate(dealers):
            combined = shamir.combine(weights, [_at(self._shares[name], place) for name in holders])
            secrets[dealer] = self._checked(dealer, combined)
        return Transcript(
            roster=self.roster,
            deals=tuple(DealRecord(name, *self._deals[name].signed) for name in dealers),
            seeds=tuple(Opening(name, secrets[name]) for name in survivors),
            mask_secrets=tuple(Opening(name, secrets[name]) for name in self.dropped),
            signatures=tuple(
                SurvivorSignature(name, self._signatures[name]) for name in survivors if name in self._signatures
            ),
        )

    def sum(self) -> Vector:
        """Returns the sum of the survivors' vectors; raises as :meth:`transcript` and :meth:`Transcript.sum`."""
        return self.transcript().sum(self._masked)

    @property
    def _statement(self) -> SurvivorStatement:
        return SurvivorStatement(self.roster.context, self.survivors or (), self.dropped)

    def _kind(self, dealer: str) -> Kind:
        return "seed" if dealer in (self.survivors or ()) else "mask"

    def _checked(self, dealer: str, secret: bytes | None) -> str:
        if secret is not None:
            text = secret.hex()
            if (
                self._kind(dealer) == "seed"
                and commitment_to(text, self.roster.context) == self._deals[dealer].commitment
            ):
                return text
            if self._kind(dealer) == "mask" and public_half(text) == self.roster.member(dealer).mask:
                return text
        raise wrong_shares(dealer, f"dealt shares that do not give its {self._kind(dealer)} secret")

    def _enough(self, field: str, found: Collection[str]) -> tuple[str, ...]:
        if len(found) < self.roster.needed:
            raise FerretError.of_field("secure.too_few", field, len(found), f"the sum needs {self.roster.needed}")
        return in_order(self.roster, found)

    def _reached(self, field: str, found: Collection[str]) -> tuple[str, ...]:
        if len(found) < self.roster.threshold:
            message = f"{self.roster.threshold} are needed"
            raise FerretError.of_field("secure.too_few", field, len(found), message)
        return in_order(self.roster, found)

    def _require(self, met: bool, message: str, name: str) -> None:
        if not met:
            raise FerretError.of_field(
                "secure.closed", "participant", name, f"its {message} does not belong to this stage"
            )


def _conflict(participant: str, message: str) -> FerretError:
    return FerretError.of_field("secure.conflict", "participant", participant, message)


def _at(message: bytes, place: int) -> bytes:
    return message[SHARE_BYTES * place : SHARE_BYTES * (place + 1)]
