from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferret_sdk.service.events import ServerSentEvent, parse_events

STREAM = (
    b': ping\n\nid: 1\nevent: round.opened\ndata: {"a":\ndata: 1}\n\n'
    b"retry: 5\nid: 2\r\ndata:x\xe2\x80\xa8y\r\n\r\ndata\r\r"
)
MESSAGES = [
    ServerSentEvent("1", "round.opened", '{"a":\n1}'),
    ServerSentEvent("2", "message", "x\u2028y"),
    ServerSentEvent("2", "message", ""),
]


def test_fields_comments_and_every_line_end():
    assert list(parse_events([STREAM + b"\n"])) == MESSAGES


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_where_the_network_cuts_the_bytes_does_not_matter(cuts):
    edges = [0, *sorted(cuts), len(STREAM)]
    chunks = [STREAM[a:b] for a, b in pairwise(edges)]
    assert list(parse_events([*chunks, b"\n"])) == MESSAGES


@pytest.mark.parametrize("cut", [b"data: half", b"data: half\n", b"id: 9\nevent: x\n"])
def test_an_event_cut_off_is_dropped(cut):
    assert list(parse_events([b"data: whole\n\n" + cut])) == [ServerSentEvent("", "message", "whole")]
