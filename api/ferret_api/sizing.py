"""Limits of the API, derived from two settings: the expected participants and the connections of one process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

OTHER_FILES = 256
"""Descriptors reserved for other uses: 40 threads with a database connection of up to three files each, uploads."""
POLLS_PER_SECOND = 200.0
"""Polls that two cores handle easily in addition to uploads: docs/results/hardening/api-sqlite.md."""
SPREAD = 0.5
"""Jitter of poll intervals: they range from 1 - SPREAD to 1 + SPREAD times their mean."""
SHORTEST_POLL_SECONDS, USUAL_POLL_SECONDS = 0.2, 2.0
STRANGER_REQUESTS_PER_MINUTE = 6_000
REQUESTS_TO_JOIN = 15
"""Requests of one participant before its token is recognised, including retries."""


@dataclass(frozen=True)
class Sizing:
    """Limits of the API. Those with a default are the same for all sizes; :meth:`derived` computes the others."""

    max_connections: int
    """Concurrent connections of a process: the setting, or fewer if the system allows too few open files."""
    max_connections_per_address: int
    """Concurrent connections from one address (IPv6: one /64): half of all. A trusted proxy may have all."""
    max_held: int
    """Polls for work that are held open: a quarter of the connections. Others are answered immediately."""
    max_streams: int
    """Concurrent event streams: half of the connections."""
    max_streams_per_token: int
    """Concurrent event streams of one token or session: a quarter of the connections."""
    poll_seconds: float
    """Mean seconds between two polls of an idle participant: all of them together poll at 200 a second.

    Clipped to 0.2 to 2 s. With more participants than expected it grows."""
    polls_per_second: float
    """Maximum polls a second of all participants together: 200, or more if each would otherwise wait longer than
    ``longest_poll_seconds``."""
    stranger_requests_per_minute: int
    """Requests without a recognised token from one address. All participants may share one address when they join."""
    longest_poll_seconds: float = 300.0
    """Maximum seconds until a participant polls again, so that none seems lost. The SDK accepts no more."""
    participant_requests_per_minute: int = 6_000
    """Requests of one participant: a hundred a second, far more than a round needs."""
    user_requests_per_minute: int = 60_000
    """Requests with one user token or in one session; high enough for scripts."""
    failures_per_minute: int = 100
    """Wrong tokens and codes, and password attempts, from one address. It makes guessing slow."""
    playground_per_minute: int = 30
    """Questions of one user in the playground: one every two seconds, faster than anyone reads."""
    header_seconds: float = 10.0
    """Maximum time from the connection to complete headers, which fit in one packet."""
    body_seconds: float = 30.0
    """Maximum time for a body, and for a client to read its response, in addition to that by
    ``body_bytes_per_second``."""
    body_bytes_per_second: int = 16_384
    """Minimum rate of a body, and of a client that reads its response: a slow mobile link."""
    keep_alive_seconds: int = 10
    """Idle time after which a connection is closed. It is longer than that of proxies."""
    stream_poll_seconds: float = 0.5
    """Interval of polling the database for new events of an experiment, for all its streams together."""
    alert_seconds: float = 2.0
    """Interval of polling the database for unsent alerts."""

    @classmethod
    def derived(cls, participants: int, connections: int, descriptors: int) -> Self:
        """Returns the limits for these settings and at most ``descriptors`` open files.

        Up to ``OTHER_FILES`` descriptors, but no more than half, are reserved for other uses."""
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
