"""The playground where RabbitMQ carries its messages and a Redis its words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ferret_api.settings import ApiSettings
from ferret_cli.stack import broker as embedded
from ferret_core.demo import model_path
from tests.api.conftest import Live
from tests.api.test_playground import Asked, experiment, kinds, start_worker, texts

pytestmark = [pytest.mark.rabbitmq, pytest.mark.redis]


@pytest.fixture
def redis_url(tmp_path: Path, need: Callable[[bool, str], None]) -> Iterator[str]:
    need(embedded.find_program() is not None, "a broker: apt-get install redis-server")
    own = embedded.prepare(tmp_path)
    own.child.start()
    yield own.url
    own.child.kill()


def test_a_question_is_answered_token_by_token(
    rabbitmq: str,
    redis_url: str,
    make_settings: Callable[..., ApiSettings],
    serve: Callable[[ApiSettings], Live],
    tmp_path: Path,
) -> None:
    settings = make_settings(broker_url=rabbitmq, redis_url=redis_url)
    live = serve(settings)
    (tmp_path / "models").mkdir()
    experiment_id = experiment(live, model_path(), tmp_path / "models")
    worker = start_worker(settings.home, rabbitmq, FERRET_REDIS_URL=redis_url)
    try:
        asked = Asked(live, worker, experiment_id, live.site.database)
        asked.ready()
        events = asked.events(max_new_tokens=8)
        assert kinds(events) == ["loading", "done", "loading", "done", "end"]
        assert texts(events, "tuned")
    finally:
        worker.kill()


@pytest.mark.heavy
def test_its_worker_does_not_start_without_a_redis(make_settings: Callable[..., ApiSettings]) -> None:
    worker = start_worker(make_settings().home, "amqp://127.0.0.1:1/ferret")
    assert worker.wait(60)
    assert worker.exit_code == 2
    assert "FERRET_REDIS_URL" in worker.last_lines()
