"""Dependency that reserves a slot for a stream and watches its reader's access."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import Depends

from ferret_api.access import Session, UserBearer
from ferret_api.events.access_check import StreamReader
from ferret_api.events.permission import Claim
from ferret_api.events.streams import FeedsDep
from ferret_api.schemas import ExperimentId


async def _place(
    experiment_id: ExperimentId, feeds: FeedsDep, bearer: UserBearer, session: Session
) -> AsyncGenerator[StreamReader]:
    with feeds.place(Claim(bearer.credentials if bearer else session or "", experiment_id)) as follower:
        yield follower


Place = Annotated[StreamReader, Depends(_place)]
"""Slot that is held until the stream ends; raises ``stream.refused`` if there are too many streams."""
