"""What a site's administrator reads while ``ferret join`` runs."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from ferret_cli import join_display
from ferret_core.protocol.errors import PROBLEMS
from ferret_core.protocol.states import WaitReason
from ferret_sdk.service.progress import Progress, Stage


def test_every_stage_and_every_reason_to_wait_has_words() -> None:
    others = {stage: join_display.words(Progress(stage, 4, 5, 10)) for stage in Stage if stage != Stage.WAIT}
    waits = {reason: join_display.words(Progress(Stage.WAIT, 4, 1, 2, reason)) for reason in WaitReason}
    assert len({*others.values(), *waits.values()}) == len(Stage) - 1 + len(WaitReason)


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (Progress(Stage.DOWNLOAD, 0, 3_200_000, 13_000_000), "downloading the base model: 3.2 MB of 13.0 MB"),
        (Progress(Stage.DOWNLOAD, 0, 0, 13_000_000), "downloading the base model: 13.0 MB"),
        (Progress(Stage.TRAIN, 4, 5, 10), "round 4: training, step 5 of 10"),
        (Progress(Stage.TRAIN, 4, 5), "round 4: training"),
        (Progress(Stage.UPLOAD, 4, 0, 8800), "round 4: sending 8.8 kB"),
        (Progress(Stage.OUTAGE, done=95.2), "the server does not answer, for 95 s now; retrying"),
    ],
)
def test_figures_are_told_where_there_are_any(progress: Progress, text: str) -> None:
    assert join_display.words(progress) == text


def test_a_log_gets_each_stage_once_with_its_time_and_what_is_waited_for_when_it_changes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = join_display.Lines()
    for joined in (1, 1, 1, 2):
        lines(Progress(Stage.WAIT, 0, joined, 3, WaitReason.PARTICIPANTS))
    for step in range(11):
        lines(Progress(Stage.TRAIN, 1, step, 10))
    lines(Progress(Stage.UPLOAD, 1, 0, 8800))
    for seconds in (0.1, 5.4):
        lines(Progress(Stage.OUTAGE, done=seconds))
    written = [line.split("  ", 1) for line in capsys.readouterr().err.splitlines()]
    assert all(abs(datetime.now() - datetime.fromisoformat(time)) < timedelta(minutes=5) for time, _ in written)
    assert [text for _, text in written] == [
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
