"""A site that has to be approved waits for it, goes on by itself, and is told when it is refused."""

from __future__ import annotations

import threading
import time

import pytest

from ferret_core.protocol.states import ParticipantState, WaitReason
from ferret_sdk import Participant
from ferret_sdk.service.progress import Progress, Stage
from tests.refusals import refused

pytestmark = pytest.mark.timeout(90)


def test_it_waits_downloads_nothing_and_goes_on_once_it_is_approved(api, worker, service, toy_spec, toy_data, tmp_path):
    run = service.submit(toy_spec(participants={"simulated": 1, "edge": 1, "approval": True}, rounds=2))
    home = tmp_path / "site"
    site = Participant.enrol(api.url, run.create_code().code, "עמק", home)
    told: list[Progress] = []
    ended: list[str] = []
    running = threading.Thread(target=lambda: ended.append(site.run(toy_data[0], on_progress=told.append)))
    running.start()
    while not told:
        time.sleep(0.02)
    time.sleep(1)  # the base model is there by now, and others have nothing to wait for
    assert {(each.stage, each.awaited) for each in told} == {(Stage.WAIT, WaitReason.APPROVAL)}
    assert not list(run.rounds())
    assert not list(home.rglob("*.safetensors"))
    with refused("participant.in_use"):
        site.preview(toy_data[0])

    (waiting,) = run.participants()
    assert waiting.state == ParticipantState.PENDING
    assert run.approve(waiting.name).state == ParticipantState.ACTIVE
    running.join()
    assert ended == ["completed"]
    assert {found.state for found in run.contributions() if found.participant == waiting.name} == {"accepted"}
