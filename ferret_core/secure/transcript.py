"""The transcript of a secure sum: from it and the masked vectors, anyone can check and repeat the sum.

It opens the self masks of the survivors and the pair masks of the dropouts, and so nothing about a single vector.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import Field

from ferret_core.protocol.digest import digest_json
from ferret_core.protocol.ids import Digest, ParticipantName, SecretKey, SignatureText
from ferret_core.protocol.spec import StrictModel
from ferret_core.secure.masks import MaskSum, self_key
from ferret_core.secure.member import SurvivorStatement, require_agreement, survivors_invalid
from ferret_core.secure.packing import Vector
from ferret_core.secure.prekeys import public_half
from ferret_core.secure.roster import MOST_MEMBERS, Roster
from ferret_core.secure.shares import SignedDeal, commitment_to, wrong_shares


class DealRecord(NamedTuple):
    """The signed part of a dealer's deal."""

    dealer: ParticipantName
    commitment: Digest
    root: Digest
    signature: SignatureText


class Opening(NamedTuple):
    """A dealer's opened secret: a survivor's self-mask seed, or a dropout's mask secret."""

    dealer: ParticipantName
    secret: SecretKey


class SurvivorSignature(NamedTuple):
    """A survivor's signature of the list of survivors."""

    participant: ParticipantName
    signature: SignatureText


class Transcript(StrictModel):
    """A group's roster, signed deals and opened secrets; all lists are in the roster's order."""

    roster: Roster
    deals: tuple[DealRecord, ...] = Field(max_length=MOST_MEMBERS)
    seeds: tuple[Opening, ...] = Field(max_length=MOST_MEMBERS, description="Self-mask seeds of the survivors")
    mask_secrets: tuple[Opening, ...] = Field(max_length=MOST_MEMBERS, description="Mask secrets of the dropouts")
    signatures: tuple[SurvivorSignature, ...] = Field(max_length=MOST_MEMBERS)

    @property
    def survivors(self) -> tuple[str, ...]:
        return tuple(each.dealer for each in self.seeds)

    @property
    def dropped(self) -> tuple[str, ...]:
        return tuple(each.dealer for each in self.mask_secrets)

    @property
    def digest(self) -> str:
        """BLAKE3 of the transcript's canonical JSON."""
        return digest_json(self.model_dump(mode="json"))

    def verify(self) -> None:
        """Raises ``secure.roster_invalid``, ``secure.shares_invalid`` or ``secure.survivors_invalid``, with the name of
        the member, unless all keys, signatures and opened secrets belong together."""
        self.roster.verify()
        self._check_lists()
        for dealer, commitment, root, signature in self.deals:
            if not SignedDeal(commitment, root, signature).is_valid(self.roster, dealer):
                raise wrong_shares(dealer, "did not sign its deal for this roster")
        commitments = {each.dealer: each.commitment for each in self.deals}
        for dealer, seed in self.seeds:
            if commitment_to(seed, self.roster.context) != commitments[dealer]:
                raise wrong_shares(dealer, "has another self-mask seed than it committed to")
        for dealer, secret in self.mask_secrets:
            if public_half(secret) != self.roster.member(dealer).mask:
                raise wrong_shares(dealer, "has another mask secret than that of its key")
        statement = SurvivorStatement(self.roster.context, self.survivors, self.dropped)
        signers = require_agreement(self.roster, statement, dict(self.signatures))
        if len(signers) < self.roster.threshold:
            raise survivors_invalid(str(len(signers)), f"signatures are fewer than {self.roster.threshold}")

    def sum(self, masked: Mapping[str, bytes | memoryview]) -> Vector:
        """Returns the sum of the survivors' vectors, from their masked vectors.

        Raises ``contribution.malformed`` and, for a sum that honest members cannot have, ``secure.out_of_range``.
        """
        roster, context, masks = self.roster, self.roster.context, MaskSum()
        for _, seed in self.seeds:
            masks.subtract(self_key(seed, context))
        keys = [roster.member(name).mask for name in self.survivors]
        for name, secret in self.mask_secrets:
            masks.add_pairs(context, secret, roster.member(name).mask, keys)
        return roster.layout.sum([masked[name] for name in self.survivors], masks)

    def _check_lists(self) -> None:
        dealers = tuple(each.dealer for each in self.deals)
        ordered = tuple(name for name in self.roster.names if name in {*self.survivors, *self.dropped})
        split = (*(name for name in dealers if name in self.survivors), *(n for n in dealers if n in self.dropped))
        if dealers != ordered or split != (*self.survivors, *self.dropped) or len(split) != len(dealers):
            raise survivors_invalid(", ".join(self.survivors), "are not, with the dropouts, the dealers in order")
        if len(self.survivors) < self.roster.needed:
            raise survivors_invalid(str(len(self.survivors)), f"survivors are fewer than {self.roster.needed}")
