"""One user's questions do not keep the others' out of the playground."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from ferret_core.protocol.roles import Role
from ferret_core.protocol.task_names import Queue
from ferret_db.repositories import workers
from tests.api.people import a_user
from tests.api.receiver import eventually
from tests.api.test_broker import server as server

pytestmark = pytest.mark.redis


@pytest.fixture
def live(serve: Any, make_settings: Any, server: Any) -> Any:
    """A service with a playground whose worker is too busy to take a question."""
    live = serve(make_settings(broker_url=server.url))
    with live.site.database.begin() as s:
        workers.seen(s, workers.WorkerIdentity("w", Queue.PLAYGROUND, "host", 1, "cpu"))
    return live


def test_twelve_questions_of_one_user_leave_room_for_another(live: Any) -> None:
    experiment_id = live.site.submit()
    live.site.start(experiment_id, [live.site.store("weights", b"weights")])
    url = f"{live.url}/api/v1/experiments/{experiment_id}/playground"
    many, other = (a_user(live.site, Role.VIEWER).client.headers["Authorization"] for _ in range(2))

    with ExitStack() as open_, httpx.Client(timeout=60) as client:

        def ask(authorization: str) -> httpx.Response:
            asking = client.stream("POST", url, json={"question": "?"}, headers={"Authorization": authorization})
            return open_.enter_context(asking)

        answers = [ask(many) for _ in range(12)]
        assert [answer.status_code for answer in answers] == [200] * 2 + [429] * 10
        assert b'"playground.busy"' in answers[-1].read()
        assert ask(other).status_code == 200
        answers[0].close()
        eventually(lambda: ask(many).status_code == 200)
