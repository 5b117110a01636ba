"""The dry run: what it shows is what is sent afterwards, and nothing is sent by it."""

from __future__ import annotations

import json

import pytest

from ferret_core.protocol.wire import Contribution
from ferret_sdk import Participant
from ferret_sdk.http.transport import Answer, Transport
from tests.refusals import refused

pytestmark = pytest.mark.timeout(90)


@pytest.fixture
def sent(monkeypatch) -> list[tuple[str, str, bytes, dict[str, str]]]:
    """Every request of a participant that has a body."""
    seen: list[tuple[str, str, bytes, dict[str, str]]] = []
    request = Transport.request

    def watched(transport: Transport, method: str, path: str, **options) -> Answer:
        if options.get("content"):
            seen.append((method, path, options["content"], dict(options["headers"])))
        return request(transport, method, path, **options)

    monkeypatch.setattr(Transport, "request", watched)
    return seen


@pytest.mark.parametrize("algorithm", ["ferret", "topk"])
def test_it_shows_the_contribution_that_the_next_round_gets(
    api, worker, service, toy_spec, toy_data, tmp_path, sent, algorithm
) -> None:
    run = service.submit(toy_spec(algorithm, participants={"edge": 1}, rounds=1))
    site = Participant.enrol(api.url, run.create_code().code, "site-a", tmp_path)
    while run.refresh().experiment.digest is None:
        pass
    sent.clear()
    preview = site.preview(toy_data[0])
    assert sent == []
    assert [found.state for found in run.contributions()] in ([], ["pending"])
    assert not list(tmp_path.glob("participants/*/*-upload/*"))
    assert site.preview(toy_data[0]).digest == preview.digest

    assert site.run(toy_data[0]) == "completed"
    (method, path, blob, headers) = next(request for request in sent if request[0] == "PUT")
    (mine,) = run.contributions()
    assert (preview.method, preview.size, preview.digest) == (method, len(blob), mine.digest)
    assert preview.path.rpartition("/")[2] == path.rpartition("/")[2]
    body = [part for part in preview.parts if part.place != "header"]
    assert sum(part.size for part in body) == len(blob)
    contribution = Contribution.decode(blob)
    shown = {part.name: json.loads(part.value) for part in body if part.place == "metadata" and part.size < 60}
    assert shown.items() <= contribution.meta.model_dump(mode="json").items()
    assert {part.name for part in body if part.place == "metadata"} == set(contribution.meta.model_dump())
    arrays = {(name, str(array.dtype), array.nbytes) for name, array in contribution.arrays.items()}
    assert {(part.name, part.type, part.size) for part in body if part.place == "array"} == arrays
    named = {part.name.lower() for part in preview.parts if part.place == "header"}
    assert named >= {name.lower() for name in headers} | {"authorization", "content-length", "user-agent", "host"}
    assert site.member.token not in str(preview)


def test_the_terms_hold_for_it_too(api, worker, service, toy_spec, toy_data, tmp_path) -> None:
    run = service.submit(toy_spec(participants={"edge": 1}))
    (tmp_path / "site.toml").write_text("[limits]\nsteps = 3\n")
    site = Participant.enrol(api.url, run.create_code().code, "site-a", tmp_path)
    while run.refresh().experiment.digest is None:
        pass
    with refused("terms.refused"):
        site.preview(toy_data[0])


def test_before_there_is_a_model_it_says_so(api, service, toy_spec, toy_data, tmp_path) -> None:
    run = service.submit(toy_spec(participants={"edge": 1}))
    site = Participant.enrol(api.url, run.create_code().code, "site-a", tmp_path)
    with refused("experiment.conflict", "no model yet"):
        site.preview(toy_data[0])
