"""How much is taken back: medians that no minority moves, and a record that says otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferret_core.ledger import LedgerRecord
from ferret_core.protocol.rises import packed
from ferret_core.protocol.wire import ContributionMeta
from ferret_core.robust.taken_back import check, to_take_back
from tests.refusals import refused

RISE = 0.05
HARMLESS, HARMFUL = packed([-0.1, -0.05, 0.0, 0.01]), packed([3.0, 2.0, 1.0, 0.5])
VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "ledger.json").read_text(encoding="utf-8"))
RECORD = LedgerRecord.model_validate(VECTORS[6]["record"])

numbers = st.lists(st.floats(-10, 10, width=16), min_size=4, max_size=4)


def metas(*rises: str | None) -> list[ContributionMeta]:
    said: dict[str, Any] = {"experiment": RECORD.experiment, "round": RECORD.round, "algorithm": "ferret"}
    said |= {"base_digest": RECORD.base_digest, "examples": 8}
    return [ContributionMeta(**said, participant=f"site-{n}", rises=text) for n, text in enumerate(rises)]


@pytest.mark.parametrize(
    ("rises", "halvings"),
    [
        ([], 0),
        ([HARMLESS], 0),
        ([HARMFUL], 3),
        ([packed([1, 0.05, 0.04, 0.03])], 1),
        ([packed([1, 0.06, 0.04, 0.03])], 2),
        ([packed([1, 1, 1, -1])], 3),
        ([packed([0, 1, 1, 1])], 0),  # the longest that does no harm, whatever the shorter ones do
        ([HARMLESS, HARMFUL], 0),  # the lower of two
        ([HARMLESS, HARMFUL, HARMFUL], 3),
        ([packed([1, 1, 0, 0]), packed([1, 0, 0, 0]), packed([0, 0, 1, 1])], 1),  # each share has its own median
    ],
)
def test_the_longest_share_that_does_no_harm_stays(rises: list[str], halvings: int) -> None:
    assert to_take_back(rises, RISE) == halvings


@given(honest=st.lists(numbers, min_size=1, max_size=6), lies=st.lists(numbers, max_size=5), rise=st.floats(0, 1))
def test_a_minority_of_liars_cannot_lead_beyond_what_the_others_measured(
    honest: list[list[float]], lies: list[list[float]], rise: float
) -> None:
    lies = lies[: len(honest) - 1]
    found = to_take_back([packed(each) for each in [*honest, *lies]], rise)
    least, most = np.min(honest, axis=0), np.max(honest, axis=0)
    assert to_take_back([packed(least)], rise) <= found <= to_take_back([packed(most)], rise)


def test_who_sent_none_has_no_vote() -> None:
    record = RECORD.model_copy(update={"taken_back": 3})
    check(record, metas(HARMFUL, None, None, None), RISE)
    check(RECORD.model_copy(update={"taken_back": 0}), metas(None, None), RISE)


def test_a_record_that_contradicts_its_contributions_is_broken() -> None:
    for wrong in (0, 1, 2):
        with refused("ledger.broken", f"taken_back is {wrong}, and its contributions' rises say 3"):
            check(RECORD.model_copy(update={"taken_back": wrong}), metas(HARMFUL, HARMFUL, HARMLESS), RISE)
    check(RECORD.model_copy(update={"version": 4, "taken_back": None}), metas(HARMFUL), RISE)
