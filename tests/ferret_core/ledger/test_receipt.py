"""Receipts by the published vectors, and everything else that somebody may show in their place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ferret_core.ledger.receipt import Receipt
from ferret_core.ledger.record import LedgerRecord
from ferret_core.protocol.errors import FerretError
from tests.refusals import refused

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "ledger.json").read_text(encoding="utf-8"))
LAST: dict[str, Any] = VECTORS[1]
RECORD = LedgerRecord.model_validate(LAST["record"])
RECEIPT = Receipt.of(RECORD, "clinic-7")


def invalid(receipt: Receipt) -> str:
    with refused("receipt.invalid") as caught:
        receipt.verified()
    return caught.value.detail


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["name"])
def test_the_published_vectors(vector: dict[str, Any]) -> None:
    record = LedgerRecord.model_validate(vector["record"])
    assert sorted(vector["receipts"]) == sorted({*dict(record.contributions), *(name for name, _, _ in record.refused)})
    for name, told in vector["receipts"].items():
        given = {"header": vector["header"], "hash": vector["hash"], **told}
        assert Receipt.of(record, name).model_dump(mode="json") == given
        assert Receipt.model_validate(given).verified().participant == name


def test_it_says_what_became_of_the_contribution() -> None:
    assert RECEIPT.verified().contribution == "c0" * 32
    assert Receipt.of(RECORD, "lab-2").verified().clipped == 0.25
    assert "too long" in str(Receipt.of(RECORD, "ward-9").verified().refused)


def test_there_is_none_for_others() -> None:
    with refused("receipt.not_found", "nobody"):
        Receipt.of(RECORD, "nobody")


def test_another_round_place_or_leaf_is_refused() -> None:
    other = Receipt.of(LedgerRecord.model_validate(VECTORS[0]["record"]), "clinic-7")
    assert "path" in invalid(RECEIPT.model_copy(update={"header": other.header, "hash": other.hash}))
    assert "header" in invalid(RECEIPT.model_copy(update={"hash": other.hash}))
    assert "path" in invalid(RECEIPT.model_copy(update={"index": 1}))
    assert "path" in invalid(RECEIPT.model_copy(update={"path": RECEIPT.path[:-1]}))
    assert "path" in invalid(RECEIPT.model_copy(update={"leaf": Receipt.of(RECORD, "zoo").leaf}))


@pytest.mark.parametrize("bit", range(0, 256, 13))
def test_each_changed_bit_of_a_hash_is_refused(bit: int) -> None:
    def flipped(digest: str) -> str:
        return f"{int(digest, 16) ^ 1 << bit:064x}"

    invalid(RECEIPT.model_copy(update={"hash": flipped(RECEIPT.hash)}))
    root = RECEIPT.header.model_copy(update={"root": flipped(RECEIPT.header.root)})
    invalid(RECEIPT.model_copy(update={"header": root}))
    invalid(RECEIPT.model_copy(update={"header": root, "hash": root.hash}))
    for place, node in enumerate(RECEIPT.path):
        path = (*RECEIPT.path[:place], flipped(node), *RECEIPT.path[place + 1 :])
        invalid(RECEIPT.model_copy(update={"path": path}))


@pytest.mark.parametrize("leaf", ["", "{}", "[]", RECEIPT.leaf + " ", RECEIPT.leaf.replace(":", ": ", 1), "no"])
def test_a_leaf_that_no_record_would_have_is_refused(leaf: str) -> None:
    assert "leaf" in invalid(RECEIPT.model_copy(update={"leaf": leaf}))


def test_a_signature_that_does_not_hold_is_refused_though_the_tree_has_it() -> None:
    """The server can put any leaf into its tree; what it cannot make is the participant's signature."""
    name, key, assignment, signature = LAST["record"]["signatures"][0]
    forged = [[name, key, assignment, signature[:-2] + "0f"], LAST["record"]["signatures"][1]]
    record = LedgerRecord.model_validate({**LAST["record"], "signatures": forged})
    assert "signature" in invalid(Receipt.of(record, name))
    bare = json.dumps({"contribution": "c0" * 32, "participant": name, "public_key": key}, separators=(",", ":"))
    with pytest.raises(FerretError):
        RECEIPT.model_copy(update={"leaf": bare}).verified()


def test_what_is_written_can_be_read_again() -> None:
    assert Receipt.model_validate_json(RECEIPT.model_dump_json()) == RECEIPT
    with pytest.raises(ValidationError):
        Receipt.model_validate({**RECEIPT.model_dump(), "more": 1})
