"""What follows from how many participants and connections there may be."""

from __future__ import annotations

from dataclasses import fields

import pytest

from ferret_api.sizing import OTHER_FILES, Sizing

MANY_FILES = 1 << 20


def usual(participants: int = 400, connections: int = 4096, descriptors: int = MANY_FILES) -> Sizing:
    return Sizing.derived(participants, connections, descriptors)


def test_few_files_leave_room_for_other_things() -> None:
    assert usual(descriptors=1000).max_connections == 1000 - OTHER_FILES
    assert usual(descriptors=100).max_connections == 50


@pytest.mark.parametrize("connections", [1, 2, 5])
def test_of_few_connections_each_kind_has_one(connections: int) -> None:
    found = usual(connections=connections)
    assert min(found.max_connections_per_address, found.max_held, found.max_streams, found.max_streams_per_token) >= 1


@pytest.mark.parametrize(("participants", "seconds"), [(1, 0.2), (40, 0.2), (100, 0.5), (400, 2), (100_000, 2)])
def test_fewer_participants_may_ask_sooner(participants: int, seconds: float) -> None:
    assert usual(participants).poll_seconds == seconds


def test_very_many_participants_each_ask_within_five_minutes() -> None:
    assert usual(10_000).polls_per_second == 200
    found = usual(1_000_000)
    assert 1_000_000 / found.polls_per_second <= found.longest_poll_seconds / 1.5


def test_more_participants_take_away_from_nobody() -> None:
    few, many = usual(1), usual(1_000_000)
    assert all(getattr(many, field.name) >= getattr(few, field.name) for field in fields(Sizing))
