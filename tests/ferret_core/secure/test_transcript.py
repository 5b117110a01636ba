"""From the transcript anyone repeats the sum, and sees what does not belong to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ferret_core.secure.transcript import Transcript
from tests.ferret_core.secure.groups import (
    agreed,
    as_lists,
    dealt,
    masked,
    released,
    roster_of,
    sites_of,
    total,
    vectors_of,
)
from tests.refusals import refused


class Finished:
    """A sum of five members, of which site-03 dropped out after its deal."""

    def __init__(self) -> None:
        self.sites = sites_of(5)
        self.vectors = vectors_of(self.sites)
        group = dealt(self.sites, roster_of(self.sites))
        masked(self.sites, group, self.vectors, ["site-03"])
        agreed(self.sites, group)
        released(self.sites, group)
        self.transcript = Transcript.model_validate_json(group.transcript().model_dump_json())
        self.masked = dict(group._masked)


@pytest.fixture(scope="module")
def finished() -> Finished:
    return Finished()


@pytest.fixture(scope="module")
def other() -> Finished:
    """The same names with other keys."""
    return Finished()


def test_anyone_repeats_the_sum(finished: Finished) -> None:
    transcript = finished.transcript
    transcript.verify()
    assert (transcript.survivors, transcript.dropped) == (("site-01", "site-02", "site-04", "site-05"), ("site-03",))
    assert as_lists(transcript.sum(finished.masked)) == total(finished.vectors, transcript.survivors)


def test_no_vector_is_open(finished: Finished) -> None:
    """Without its self mask alone, and without the dropout's pair mask, a survivor's vector is still uniform."""
    transcript, layout = finished.transcript, finished.transcript.roster.layout
    only = transcript.model_copy(update={"seeds": transcript.seeds[:1]})
    with refused("secure.out_of_range"):
        only.sum(finished.masked)
    (ring, *_), packed = layout.rings, finished.masked.values()
    entries = [ring.unpack(memoryview(each)[: ring.size], ring.count) for each in packed]
    counts = np.bincount(np.concatenate(entries), minlength=8)
    expected = counts.sum() / 8
    assert float(((counts - expected) ** 2 / expected).sum()) < 27.9, "χ² of 7 degrees of freedom, p = 0.0002"


def swapped(field: str) -> Callable[[Transcript, Transcript], dict[str, Any]]:
    return lambda one, other: {field: getattr(other, field)}


@pytest.mark.parametrize(
    ("change", "code", "named"),
    [
        (swapped("roster"), "secure.shares_invalid", "site-01"),
        (swapped("deals"), "secure.shares_invalid", "site-01"),
        (swapped("seeds"), "secure.shares_invalid", "site-01"),
        (swapped("mask_secrets"), "secure.shares_invalid", "site-03"),
        (swapped("signatures"), "secure.survivors_invalid", "site-01"),
        (lambda one, _: {"signatures": one.signatures[:3]}, "secure.survivors_invalid", "3"),
        (lambda one, _: {"seeds": one.seeds[:3]}, "secure.survivors_invalid", "in order"),
        (lambda one, _: {"seeds": one.seeds[::-1]}, "secure.survivors_invalid", "in order"),
        (lambda one, _: {"mask_secrets": one.mask_secrets * 2}, "secure.survivors_invalid", "in order"),
        (lambda one, _: {"seeds": (*one.seeds, *one.mask_secrets)}, "secure.survivors_invalid", "in order"),
        (lambda one, _: {"deals": one.deals[1:], "seeds": one.seeds[1:]}, "secure.survivors_invalid", "fewer"),
    ],
)
def test_what_does_not_belong_together_is_named(
    finished: Finished,
    other: Finished,
    change: Callable[[Transcript, Transcript], dict[str, Any]],
    code: str,
    named: str,
) -> None:
    with refused(code, named):
        finished.transcript.model_copy(update=change(finished.transcript, other.transcript)).verify()
