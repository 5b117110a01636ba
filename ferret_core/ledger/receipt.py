"""A receipt: proof, without the others of the round, that a record of the ledger holds a contribution."""

from __future__ import annotations

from typing import Self

from pydantic import Field, ValidationError

from ferret_core.ledger.record import Header, Leaf, LedgerRecord
from ferret_core.protocol import merkle
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.ids import Digest
from ferret_core.protocol.signatures import Signed, is_valid
from ferret_core.protocol.spec import StrictModel


class Receipt(StrictModel):
    """A leaf of a record's tree with its path to the root, and the record's header.

    ``hash`` is the header's link in the ledger's chain. The receipt can be checked with this link alone.
    """

    header: Header
    hash: Digest = Field(description="The record's hash: BLAKE3 of the header's canonical JSON")
    leaf: str = Field(max_length=8000, description="The record's entry for the contribution, as hashed by the tree")
    index: int = Field(ge=0, description="Index of the leaf among the header's `size`")
    path: tuple[Digest, ...] = Field(max_length=64, description="Sibling hashes on the path to the root, lowest first")

    @classmethod
    def of(cls, record: LedgerRecord, participant: str) -> Self:
        """Creates the receipt; raises ``receipt.not_found`` if the record has no contribution of the participant."""
        leaves = record.leaves()
        index = next((place for place, leaf in enumerate(leaves) if leaf.participant == participant), None)
        if index is None:
            message = f"has no contribution in the record of round {record.round}"
            raise FerretError.of_field("receipt.not_found", "participant", participant, message)
        header = record.header()
        texts = [leaf.text() for leaf in leaves]
        path = merkle.path([text.encode() for text in texts], index)
        return cls(header=header, hash=header.hash, leaf=texts[index], index=index, path=tuple(path))

    def verified(self) -> Leaf:
        """Verifies the receipt, including the signature, and returns its leaf; raises ``receipt.invalid``."""
        leaf, header = self._read(), self.header
        if header.hash != self.hash:
            raise self._invalid("hash", self.hash, f"is not the hash of its header, {header.hash}")
        if merkle.root_by(self.leaf.encode(), self.index, header.size, self.path) != header.root:
            raise self._invalid("path", self.index, "does not lead from the leaf to the header's root")
        if leaf.public_key is not None and not self._is_signed(leaf, leaf.public_key):
            raise self._invalid("signature", leaf.signature, "is not valid for the contribution")
        return leaf

    def _read(self) -> Leaf:
        try:
            leaf = Leaf.model_validate_json(self.leaf)
        except ValidationError as error:
            raise self._invalid("leaf", self.leaf, "is not an entry of a record") from error
        if leaf.text() != self.leaf:
            raise self._invalid("leaf", self.leaf, "is not in canonical form")
        return leaf

    def _is_signed(self, leaf: Leaf, key: str) -> bool:
        header, assignment, signature = self.header, leaf.assignment, leaf.signature
        if assignment is None or signature is None:
            return False
        name, digest = leaf.participant, leaf.contribution
        signed = Signed(header.experiment, header.round, name, header.base_digest, assignment, digest)
        return is_valid(key, signature, signed)

    @staticmethod
    def _invalid(field: str, value: object, message: str) -> FerretError:
        return FerretError.of_field("receipt.invalid", field, value, message)
