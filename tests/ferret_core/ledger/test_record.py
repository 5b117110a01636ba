"""Records by the published vectors, and what they commit to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ferret_core.ledger.record import MOST_HALVINGS, Header, LedgerRecord, SignatureChecker

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "ledger.json").read_text(encoding="utf-8"))
LAST: dict[str, Any] = VECTORS[1]["record"]


def changed(**members: Any) -> LedgerRecord:
    return LedgerRecord.model_validate({**LAST, **members})


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_the_published_vectors(vector: dict[str, Any]) -> None:
    record = LedgerRecord.model_validate(vector["record"])
    assert record.hash == vector["hash"]
    assert record.model_dump(mode="json") == vector["record"]
    assert record.header().model_dump(mode="json") == vector["header"]


def test_the_vectors_are_a_chain_with_signatures_that_hold() -> None:
    records = [LedgerRecord.model_validate(vector["record"]) for vector in VECTORS]
    assert [record.round for record in records] == [1, 2, 3]
    assert [record.previous for record in records] == ["", *(record.hash for record in records[:-1])]
    keys = SignatureChecker()
    for record in records:
        keys.check(record)


@pytest.mark.parametrize(
    "change",
    [
        {"experiment": "exp_fedcba9876543210"},
        {"spec": "00" * 32},
        {"round": 3},
        {"base_digest": "00" * 32},
        {"digest": "00" * 32},
        {"update": "00" * 32},
        {"previous": "00" * 32},
        {"contributions": [*LAST["contributions"][:-1], ["zoo", "00" * 32]]},
        {"contributions": LAST["contributions"][:-1]},
        {"contributions": [*LAST["contributions"], ["zoo-2", "00" * 32]]},
        {"contributions": [*LAST["contributions"][:-1], ["zap", LAST["contributions"][-1][1]]]},
        {"clipped": [["lab-2", 0.5]]},
        {"clipped": [["site-x", 0.25]]},
        {"clipped": []},
        {"refused": [["ward-9", "c2" * 32, "no reason"]]},
        {"refused": [["ward-9", "00" * 32, LAST["refused"][0][2]]]},
        {"halvings": LAST["halvings"] + 1},
        {"signatures": LAST["signatures"][:1]},
        {"signatures": [[LAST["signatures"][0][0], "00" * 32, *LAST["signatures"][0][2:]], LAST["signatures"][1]]},
    ],
    ids=lambda change: " ".join(change),
)
def test_whatever_changes_has_another_hash(change: dict[str, Any]) -> None:
    assert set(change) <= set(LAST)
    assert changed(**change).hash != changed().hash


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"contributions": LAST["contributions"][::-1]}, "contributions: participants are not in order"),
        ({"contributions": [*LAST["contributions"], LAST["contributions"][-1]]}, "not in order, each once"),
        ({"refused": [["zoo", "c2" * 32, "long"]], "signatures": []}, "refused: zoo does not belong there"),
        ({"clipped": [["ward-9", 0.5]]}, "clipped: ward-9 does not belong there"),
        ({"refused": []}, "signatures: ward-9 does not belong there"),
        ({"signatures": LAST["signatures"][::-1]}, "signatures: participants are not in order"),
    ],
)
def test_a_record_whose_leaves_would_not_show_all_of_it_is_none(change: dict[str, Any], said: str) -> None:
    """Otherwise two records would have the same hash."""
    with pytest.raises(ValidationError, match=said):
        changed(**change)


@pytest.mark.parametrize("count", [None, -1, MOST_HALVINGS + 1, 0.5])
def test_a_step_is_halved_a_whole_number_of_times_and_not_for_ever(count: Any) -> None:
    assert changed(halvings=MOST_HALVINGS).halvings == MOST_HALVINGS
    with pytest.raises(ValidationError, match="halvings"):
        changed(halvings=count)


@pytest.mark.parametrize("version", [0, 2, None])
def test_a_record_of_another_version_is_none(version: Any) -> None:
    with pytest.raises(ValidationError, match="version"):
        changed(version=version)


@pytest.mark.parametrize("model", [LedgerRecord, Header])
def test_no_member_may_be_missing_but_the_groups_of_secure_sums(model: type[LedgerRecord | Header]) -> None:
    whole = changed() if model is LedgerRecord else changed().header()
    for name in model.model_fields.keys() - {"groups"}:
        rest = {member: value for member, value in whole.model_dump().items() if member != name}
        with pytest.raises(ValidationError, match=f"{name}\n  Field required"):
            model.model_validate(rest)


def test_the_hash_of_a_record_is_that_of_its_header_alone() -> None:
    """Who knows the hash can be shown the header, and one leaf of it, without the others."""
    assert changed().hash == changed().header().hash
    assert changed().header().size == len(LAST["contributions"]) + len(LAST["refused"])


def test_a_round_without_contributions_has_a_header_too() -> None:
    empty = changed(contributions=[], clipped=[], refused=[], signatures=[])
    assert empty.header().size == 0
    assert empty.hash != changed().hash


def test_a_secure_sum_is_in_the_hash_and_has_exactly_its_survivors() -> None:
    names = tuple(name for name, _ in LAST["contributions"])
    group = {"name": "group-1", "members": names, "survivors": names, "sum": "5a" * 32, "transcript": "7c" * 32}
    masked = changed(groups=(group,), clipped=(), refused=(), signatures=())
    plain = changed(clipped=(), refused=(), signatures=())
    assert masked.hash != plain.hash
    assert "groups" not in plain.model_dump(mode="json")
    for wrong in ({"survivors": names[:-1]}, {"members": names[:-1]}):
        with pytest.raises(ValidationError, match="survivors"):
            changed(groups=({**group, **wrong},), clipped=(), refused=(), signatures=())


def test_each_member_of_a_secure_sum_is_in_one_group_and_counts_with_it() -> None:
    names = tuple(name for name, _ in LAST["contributions"])
    about = {"sum": "5a" * 32, "transcript": "7c" * 32}
    first, second = (
        {"name": f"group-{place}", "members": part, "survivors": part, **about}
        for place, part in enumerate((names[:1], names[1:]), start=1)
    )
    assert len(changed(groups=(first, second), clipped=(), refused=(), signatures=()).groups) == 2
    twice = {**second, "members": names}
    for wrong in ((first,), (first, twice), (first, {**second, "refused": "too long"})):
        with pytest.raises(ValidationError, match="survivors"):
            changed(groups=wrong, clipped=(), refused=(), signatures=())
    left_out = [(name, digest, "its group was left out") for name, digest in LAST["contributions"][1:]]
    changed(
        groups=(first, {**second, "refused": "too long"}),
        contributions=LAST["contributions"][:1],
        clipped=(),
        refused=left_out,
        signatures=(),
    )
