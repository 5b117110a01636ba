"""What a site's administrator reads while ``ferret join`` runs."""

from __future__ import annotations

import pytest

from ferret_cli import join_display
from ferret_core.protocol.errors import PROBLEMS
from ferret_core.protocol.states import WaitReason
from ferret_sdk.service.progress import Progress, Stage


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (Progress(Stage.TURN), "another participant on this machine is fetching the base model; waiting for it"),
        (Progress(Stage.DOWNLOAD, 0, 3_200_000, 13_000_000), "downloading the base model: 3.2 MB of 13.0 MB"),
        (Progress(Stage.DOWNLOAD, 0, 0, 13_000_000), "downloading the base model: 13.0 MB"),
        (Progress(Stage.WAIT, 4, awaited=WaitReason.END), "waiting for the end: the last model is being measured"),
        (Progress(Stage.CATCH_UP, 3, 3, 12), "catching up: round 3 of 12"),
        (Progress(Stage.TRAIN, 4, 5, 10), "round 4: training, step 5 of 10"),
        (Progress(Stage.TRAIN, 4, 5), "round 4: training"),
        (Progress(Stage.TRAIN, 4, 0, 10), "round 4: training"),
        (Progress(Stage.UPLOAD, 4, 0, 8800), "round 4: sending 8.8 kB"),
        (Progress(Stage.UPLOAD, 4, 3_200_000, 13_000_000), "round 4: sending 3.2 MB of 13.0 MB"),
        (Progress(Stage.OUTAGE, done=0.1), "the server does not answer; retrying"),
        (Progress(Stage.OUTAGE, done=95.2), "the server does not answer, for 95 s now; retrying"),
        (
            Progress(Stage.WAIT, awaited=WaitReason.APPROVAL),
            "waiting to be approved by whoever runs the experiment; it then goes on by itself",
        ),
        (
            Progress(Stage.WAIT, 0, 1, 2, WaitReason.PARTICIPANTS),
            "waiting for other participants: 1 of 2 have joined",
        ),
        (
            Progress(Stage.WAIT, 4, 1, 2, WaitReason.CONTRIBUTIONS),
            "round 4: waiting for other participants: 1 of 2 have contributed",
        ),
        (Progress(Stage.WAIT, 4, awaited=WaitReason.MODEL), "round 4: waiting for the new model"),
        (Progress(Stage.WAIT, 5, awaited=WaitReason.ROUND), "waiting for round 5"),
        (Progress(Stage.WAIT, 4, awaited=WaitReason.RESUMPTION), "the experiment is paused; waiting until it goes on"),
    ],
)
def test_progress_in_words(progress: Progress, text: str) -> None:
    assert join_display.words(progress) == text


def test_a_log_gets_each_stage_once_and_what_is_waited_for_when_it_changes(capsys: pytest.CaptureFixture[str]) -> None:
    lines = join_display.Lines()
    for joined in (1, 1, 1, 2):
        lines(Progress(Stage.WAIT, 0, joined, 3, WaitReason.PARTICIPANTS))
    for step in range(11):
        lines(Progress(Stage.TRAIN, 1, step, 10))
    lines(Progress(Stage.UPLOAD, 1, 0, 8800))
    for seconds in (0.1, 5.4):
        lines(Progress(Stage.OUTAGE, done=seconds))
    assert capsys.readouterr().err.splitlines() == [
        "waiting for other participants: 1 of 3 have joined",
        "waiting for other participants: 2 of 3 have joined",
        "round 1: training",
        "round 1: sending 8.8 kB",
        "the server does not answer; retrying",
        "the server does not answer, for 5 s now; retrying",
    ]


def test_every_next_step_belongs_to_a_code_and_none_is_the_servers_owners() -> None:
    assert set(join_display.NEXT_STEPS) <= set(PROBLEMS)
    assert not any("ferret serve" in step or "ferret experiment" in step for step in join_display.NEXT_STEPS.values())
