"""How much the API takes on at a time, from two numbers that an operator can estimate: how many participants there will
be, and how many connections one process may hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

OTHER_FILES = 256
"""Descriptors kept for everything else: 40 threads with a database connection of up to three files each, uploads."""
POLLS_PER_SECOND = 200.0
"""Questions that two cores answer with ease beside uploads: docs/results/hardening/api-sqlite.md."""
SPREAD = 0.5
"""Pauses lie between 1 - SPREAD and 1 + SPREAD times their mean."""
SHORTEST_POLL_SECONDS, USUAL_POLL_SECONDS = 0.2, 2.0
STRANGER_REQUESTS_PER_MINUTE = 6_000
REQUESTS_TO_JOIN = 15
"""Of one participant before its token is known, its retries included."""


@dataclass(frozen=True)
class Sizing:
    """``derived`` from the two numbers. What has a default is the same for all sizes."""

    max_connections: int
    """Connections of a process at a time: as asked, and fewer where too few files may be open."""
    max_connections_per_address: int
    """Of them from one address (IPv6: one /64): half, so that others have room. A trusted proxy may have all."""
    max_held: int
    """Questions for work that are held open at a time: a quarter of the connections. Others are answered at once."""
    max_streams: int
    """Event streams at a time: half of the connections, so that half are for requests."""
    max_streams_per_token: int
    """Of them with one token or session: a quarter of the connections, so that nobody has all streams."""
    poll_seconds: float
    """Seconds between two questions of an idle participant on average: what all of them need at 200 a second, within
    reason; with more participants than were expected it grows."""
    polls_per_second: float
    """Questions a second that all participants together are told to ask at most: 200, and more where each would
    otherwise wait longer than ``longest_poll_seconds``."""
    stranger_requests_per_minute: int
    """Without a known token, from one address: all participants may join from behind one."""
    longest_poll_seconds: float = 300.0
    """Seconds that a participant is told to wait at most, so that none seems to be lost; what the SDK accepts."""
    participant_requests_per_minute: int = 6_000
    """Of one participant: a hundred a second, far more than a round needs."""
    user_requests_per_minute: int = 60_000
    """With the admin token, or in one session: room for scripts."""
    failures_per_minute: int = 100
    """Wrong tokens and codes, and attempts with a password, from one address: guessing must be slow."""
    playground_per_minute: int = 30
    """Questions of one user in the playground: one every two seconds is quicker than anybody reads."""
    header_seconds: float = 10.0
    """Until a request's headers are complete, from its connection on: they are one packet."""
    body_seconds: float = 30.0
    """That a body may take, and a client to read its answer, beyond what ``body_bytes_per_second`` gives it."""
    body_bytes_per_second: int = 16_384
    """Slowest rate of a body, and of a client that reads its answer: a slow mobile link."""
    keep_alive_seconds: int = 10
    """After which a connection without a further request is closed: longer than proxies keep theirs."""
    stream_poll_seconds: float = 0.5
    """Between two looks for new events of an experiment, for all who follow it: what a person takes for at once."""
    alert_seconds: float = 2.0
    """Between two looks for alerts that are to be sent."""

    @classmethod
    def derived(cls, participants: int, connections: int, descriptors: int) -> Self:
        """With ``descriptors`` open files allowed; of few, half are kept for other things."""
        connections = min(connections, descriptors - min(OTHER_FILES, descriptors // 2))
        return cls(
            max_connections=connections,
            max_connections_per_address=max(1, connections // 2),
            max_held=max(1, connections // 4),
            max_streams=max(1, connections // 2),
            max_streams_per_token=max(1, connections // 4),
            poll_seconds=min(max(participants / POLLS_PER_SECOND, SHORTEST_POLL_SECONDS), USUAL_POLL_SECONDS),
            polls_per_second=max(POLLS_PER_SECOND, participants * (1 + SPREAD) / cls.longest_poll_seconds),
            stranger_requests_per_minute=max(STRANGER_REQUESTS_PER_MINUTE, REQUESTS_TO_JOIN * participants),
        )
