"""A participant's copy of the model that the server has left, e.g. after a backup was restored."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_sdk.participant.local_training import LocalTraining


@pytest.mark.parametrize(
    "error",
    [
        FerretError.of_field("contribution.wrong_base", "base_digest", "ab", "the ledger leads elsewhere"),
        FerretError.of_field("secure.roster_invalid", "origin", "ab", "the experiment has another"),
    ],
    ids=lambda error: error.code,
)
def test_a_deal_on_another_model_starts_over_once(error: FerretError, monkeypatch: pytest.MonkeyPatch) -> None:
    done = list[str]()
    follower: Any = SimpleNamespace(forget=lambda: done.append("forget"))
    lease: Any = object()
    nothing: Any = None
    training = LocalTraining(follower, *[nothing] * 9)

    def deal(given: Any) -> None:
        done.append("deal")
        if "forget" not in done:
            raise error

    monkeypatch.setattr(training, "_deal", deal)
    training.deal(lease)
    assert done == ["deal", "forget", "deal"]
