"""How many connections and how long each part of an exchange may take, from the settings and the system's limit."""

from __future__ import annotations

from typing import NamedTuple, Self

from ferret_api.settings import ApiSettings

OTHER_FILES = 256
"""Descriptors kept for everything else: 40 threads with a database connection of up to three files each, uploads."""


class Limits(NamedTuple):
    """``total`` and ``per_address`` are numbers of connections; times are seconds; ``bytes_per_second`` is a rate."""

    total: int
    per_address: int
    header_seconds: float
    body_seconds: float
    bytes_per_second: int

    @classmethod
    def of(cls, settings: ApiSettings, descriptors: int) -> Self:
        """With ``descriptors`` open files allowed; of few, half are kept for other things."""
        total = min(settings.max_connections, descriptors - min(OTHER_FILES, descriptors // 2))
        return cls(
            total=total,
            per_address=settings.max_connections_per_address or max(1, total // 2),
            header_seconds=settings.header_seconds,
            body_seconds=settings.body_seconds,
            bytes_per_second=settings.body_bytes_per_second,
        )
