"""The API with RabbitMQ as broker, and with or without a Redis beside it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ferret_api.counts import SharedCounts
from ferret_api.rate_limits import RateLimits
from ferret_api.settings import ApiSettings
from ferret_core.protocol.tasks import Queue
from ferret_db.broker.rabbitmq import connected
from ferret_db.repositories import gauges, workers
from tests.api.conftest import NO_BROKER, Live, open_site

NO_RABBITMQ = "amqp://ferret:a-secret-password@127.0.0.1:1/ferret"
SettingsFactory = Callable[..., ApiSettings]


@pytest.mark.rabbitmq
def test_a_submission_is_handed_over_and_seen(
    rabbitmq: str, serve: Callable[[ApiSettings], Live], make_settings: SettingsFactory
) -> None:
    live = serve(make_settings(broker_url=rabbitmq))
    experiment_id = live.site.submit()
    with connected(rabbitmq) as connection:
        message = connection.channel().basic_get("aggregate")
    assert (message.properties["content_type"], message.headers["task"]) == ("application/json", "ferret.coordinate")
    assert experiment_id in str(message.body)
    assert live.admin.get("/readyz").json()["broker"] == {"ready": True, "detail": None}
    system = live.admin.get("/api/v1/system").json()
    assert {found["queue"]: found["messages"] for found in system["queues"]} == {
        Queue.TRAIN: 0,
        Queue.AGGREGATE: 1,
        Queue.PLAYGROUND: 0,
    }
    assert "ferret_outbox_unsent" in live.admin.get("/metrics").text


def test_without_rabbitmq_nothing_is_lost_and_the_reason_is_told(make_settings: SettingsFactory) -> None:
    with open_site(make_settings(broker_url=NO_RABBITMQ)) as site:
        site.submit()
        with site.database.read() as s:
            assert sum(gauges.read(s).unsent.values()) == 1
        answer = site.client().get("/readyz")
    assert answer.status_code == 503
    detail = answer.json()["broker"]["detail"]
    assert detail == "127.0.0.1:1 (FERRET_BROKER_URL) refuses the connection; start RabbitMQ, or correct host and port"


def test_without_a_redis_requests_are_counted_and_the_playground_names_the_setting(
    make_settings: SettingsFactory,
) -> None:
    settings = make_settings(broker_url=NO_RABBITMQ)
    limits = RateLimits(settings)
    assert not isinstance(limits._counts, SharedCounts)
    limits.close()
    with open_site(settings) as site:
        url = f"/api/v1/experiments/{site.running()}/playground/example"
        answer = site.admin.post(url, json={})
    assert (answer.status_code, answer.json()["code"]) == (503, "redis.unset")
    assert "FERRET_REDIS_URL" in answer.json()["detail"]
    assert [error["field"] for error in answer.json()["errors"]] == ["FERRET_REDIS_URL"]


@pytest.mark.rabbitmq
def test_a_redis_that_is_away_is_not_taken_for_the_broker(rabbitmq: str, make_settings: SettingsFactory) -> None:
    with open_site(make_settings(broker_url=rabbitmq, redis_url=NO_BROKER)) as site:
        experiment_id = site.running()
        with site.database.begin() as s:
            workers.seen(s, workers.Identity("w", Queue.PLAYGROUND, "host", 1, "cpu"))
        answer = site.admin.post(f"/api/v1/experiments/{experiment_id}/playground/example", json={})
        assert site.client().get("/readyz").json()["broker"]["ready"]
    assert (answer.status_code, answer.json()["code"]) == (503, "redis.missing")
    assert "FERRET_REDIS_URL" in answer.json()["detail"]


def test_a_broker_that_is_away_is_named_as_such(make_settings: SettingsFactory) -> None:
    with open_site(make_settings(broker_url=NO_RABBITMQ, redis_url=NO_BROKER)) as site:
        experiment_id = site.running()
        with site.database.begin() as s:
            workers.seen(s, workers.Identity("w", Queue.PLAYGROUND, "host", 1, "cpu"))
        answer = site.admin.post(f"/api/v1/experiments/{experiment_id}/playground/example", json={})
    assert answer.json()["code"] == "broker.missing"
    assert "start RabbitMQ" in answer.json()["detail"]
