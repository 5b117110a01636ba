"""A stream's place among all that are open, with which its reader is watched."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import Depends

from ferret_api.access import Session, UserBearer
from ferret_api.events.access_check import Follower
from ferret_api.events.permission import Claim
from ferret_api.events.streams import FeedsDep
from ferret_api.schemas import ExperimentId


async def _place(
    experiment_id: ExperimentId, feeds: FeedsDep, bearer: UserBearer, session: Session
) -> AsyncGenerator[Follower]:
    with feeds.place(Claim(bearer.credentials if bearer else session or "", experiment_id)) as follower:
        yield follower


Place = Annotated[Follower, Depends(_place)]
"""Held until the stream has ended; ``stream.refused`` where there are too many."""
