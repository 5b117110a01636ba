"""Terminal output of ``ferret join``: its progress, and the output of ``--dry-run``."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import typer

from ferret_cli.output import emit, say, stderr, table
from ferret_core.client.hooks import Site
from ferret_core.protocol.errors import Exit
from ferret_core.protocol.formatting import size
from ferret_core.protocol.sanitize import shown, shown_lines
from ferret_core.protocol.states import ExperimentState, WaitReason
from ferret_core.system.heartbeat import Heartbeat
from ferret_core.system.permissions import restrict_home
from ferret_sdk.participant.exposure import Exposure
from ferret_sdk.participant.participant import Participant
from ferret_sdk.participant.privacy_budget import Budget
from ferret_sdk.service.progress import Progress, RoundReport, Stage, Totals, Watcher
from ferret_sdk.service.server_address import ClientSettings

NEXT_STEPS = {
    "server.unreachable": "check the address you were given and this machine's network; then ask who runs the server",
    "server.unexpected": "check the address; if it is right, tell the person who runs the server",
    "enrolment.invalid": "ask the person who invited you for a new code",
    "enrolment.other_server": "run the same command with the address that you were given: this has not used the code",
    "dataset.invalid": "correct your file, or say with --field what it calls instruction, input and output",
    "enrolment.used": "tell the person who invited you, and ask for a new code",
    "participant.pending": "ask the person who invited you to approve this site, and run the same command again",
    "participant.refused": "ask the person who invited you why, and for a new code if that was a mistake",
    "participant.revoked": "nothing more is sent from here; ask the person who invited you",
    "experiment.conflict": "the experiment is over; ask the person who invited you",
    "certificate.invalid": "tell the person who runs the server the message above",
    "proxy.refused": "show the person who runs your network the message above",
    "model.invalid": "name the folder of the experiment's own base model with --base, or leave it out to download it",
    "storage.full": "free some space on this machine, and run the same command again",
    "receipt.invalid": "keep the file, and compare it with a backup; the next ferret join makes receipts again",
    "audit.broken": "keep the file, and compare it with a backup: somebody or something has changed it",
    "secret.exposed": "close the file, and ask the person who invited you for a new code if somebody may have read it",
    "consent.missing": "read the message above; if this site consents, run the same command with --yes",
    "terms.invalid": "correct the file; a page on it is docs/site-terms.md",
    "terms.refused": "if this site agrees to it, change its terms (site.toml) and run the same command again",
    "terms.limit_reached": "if this site agrees to more, change its terms (site.toml) and run the same command again",
    "training.unsupported": "take part without --site, or tell the person who invited you",
    "memory.exhausted": "this machine has too little memory for the model; tell the person who invited you",
}
"""Next steps for a site, which cannot follow advice for operators of a server."""

Say = Callable[[str], None]
Paused = Callable[[], AbstractContextManager[None]]


class JoinOptions(NamedTuple):
    """The options of ``ferret join``: the ``data`` with the names of their ``fields``, and the functions of a
    ``site``; ``give_up_after`` is in seconds, and ``consented`` skips the question for consent.
    """

    data: Path
    fields: Mapping[str, str] = {}
    site: Site | None = None
    keep_model: Path | None = None
    give_up_after: float | None = None
    consented: bool = False
    json: bool = False


def begin() -> None:
    """Signals from now on that this process works, if it is watched, and restricts new files to their owner."""
    restrict_home(ClientSettings().home.expanduser())
    if path := os.environ.get("FERRET_HEARTBEAT"):
        Heartbeat(Path(path)).start()


def take_part(participant: Participant, asked: JoinOptions) -> None:
    """Trains until the experiment has ended; with ``json`` every round is one line of JSON on stdout."""
    member = participant.member
    known = "" if member.display_name == member.name else f" ({member.name})"
    say(f"{member.display_name}{known} takes part in {member.experiment} with {asked.data}")
    if (budget := participant.budget) is not None:
        say(f"privacy: {budget_in_words(budget)}")
    try:
        with watching(asked.json) as (watcher, tell, paused):
            state = _run(participant, asked, watcher, tell, paused)
            if asked.keep_model is not None and state == ExperimentState.COMPLETED:
                participant.keep_model(asked.keep_model)
    except KeyboardInterrupt:
        say("stopped. Your place is kept, and so is what was trained: run the same command again to go on")
        raise typer.Exit(Exit.INTERRUPTED) from None
    say(f"the experiment is {state.value}: {_sum(participant.totals)}")
    if asked.keep_model is not None and state == ExperimentState.COMPLETED:
        say(f"the tuned model is in {asked.keep_model}, rebuilt from the ledger and checked")


def show_preview(
    participant: Participant, data: Path, fields: Mapping[str, str], site: Site | None, *, json: bool
) -> None:
    """Trains once and prints every part of the request that would send the contribution; nothing is sent."""
    with watching(json) as (watcher, _, _):
        preview = participant.preview(data, watcher, fields=fields, site=site)
    if json:
        emit({**preview._asdict(), "parts": [part._asdict() for part in preview.parts]})
    else:
        table(("place", "name", "type", "bytes", "value"), preview.parts)
    body = f"{size(preview.size)}, BLAKE3 {preview.digest}"
    say(f"this is the whole request: {preview.method} {preview.path}, a body of {body}")
    if preview.norm is not None:
        say(f"the vector had L2 norm {preview.norm:.4g} before it was clipped and noised; that stays here")
    say("nothing of it was sent. Your place is kept: the same command without --dry-run takes part")


def _run(participant: Participant, asked: JoinOptions, watcher: Watcher, tell: Say, paused: Paused) -> ExperimentState:
    def report(done: RoundReport) -> None:
        tell(_report(done))
        if asked.json:
            emit({**done._asdict(), "error": done.error and done.error.to_json()})

    def consent(exposure: Exposure) -> bool:
        for line in readers(exposure):
            tell(line)
        if not exposure.reasons or asked.consented:
            return True
        tell(f"A contribution may reveal single examples word for word: {', and '.join(exposure.reasons)}.")
        with paused():
            return sys.stdin.isatty() and typer.confirm("Take part?", err=True)

    return participant.run(
        asked.data,
        report,
        watcher,
        fields=asked.fields,
        site=asked.site,
        give_up_after=asked.give_up_after,
        consent=consent,
    )


def readers(exposure: Exposure) -> Iterator[str]:
    """Yields the readers of each kind of data, before anything is trained."""
    update = "each of your contributions on its own" if exposure.separate else "the mean of a round's contributions"
    yield f"A contribution is computed from {exposure.examples} examples. It can reveal that a text was among them."
    yield "The server and the people who run it read each of your contributions on its own."
    yield f"The other participants of the experiment read {update}."
    yield f"The members of the experiment's project read {update}, once a round has enough participants."


@contextmanager
def watching(json: bool) -> Generator[tuple[Watcher, Say, Paused]]:
    """Shows a participant's progress, and yields functions that print a permanent line and that pause the display for
    a question.

    On a terminal progress is one line that changes, elsewhere a line for each new stage. A changing line would mix with
    stdout, so JSON has no progress.
    """
    console = stderr()
    if json or not console.is_terminal:
        with _warnings():
            yield Lines(), say, nullcontext
        return

    @contextmanager
    def paused() -> Generator[None]:
        status.stop()
        yield
        status.start()

    with console.status("") as status, _warnings():
        yield (
            lambda progress: status.update(shown(words(progress))),
            lambda text: console.print(shown_lines(text), soft_wrap=True, highlight=False, markup=False),
            paused,
        )


class Lines:
    """Prints each stage once, each change of a wait's reason, and each failure to reach the server."""

    def __init__(self) -> None:
        self._last: tuple[object, ...] = ()

    def __call__(self, progress: Progress) -> None:
        said = (progress.stage, progress.round, progress.awaited)
        if progress.stage in {Stage.WAIT, Stage.OUTAGE}:
            said = (*said, progress.done)
        if said != self._last:
            self._last = said
            say(words(progress if progress.stage in {Stage.WAIT, Stage.OUTAGE} else progress._replace(done=0)))


def words(progress: Progress) -> str:
    """Returns the progress in one line."""
    number, done, total = progress.round, progress.done, progress.total
    match progress.stage:
        case Stage.TURN:
            return "another participant on this machine is fetching the base model; waiting for it"
        case Stage.DOWNLOAD:
            return f"downloading the base model: {f'{size(done)} of ' if done else ''}{size(total)}"
        case Stage.CATCH_UP:
            return f"catching up: round {number} of {total:.0f}"
        case Stage.TRAIN:
            step = f", step {done:.0f} of {total:.0f}" if done and total else ""
            return f"round {number}: training{step}"
        case Stage.UPLOAD:
            return f"round {number}: sending {f'{size(done)} of ' if done else ''}{size(total)}"
        case Stage.OUTAGE:
            since = f", for {done:.0f} s now" if done >= 1 else ""
            return f"the server does not answer{since}; retrying"
        case Stage.REST:
            return f"nothing is done before {_clock(total)}, by this site's own terms"
        case Stage.WAIT:
            return _waiting(progress)


def _clock(seconds: float) -> str:
    """Returns the local time in ``seconds`` from now, to the minute."""
    return f"{datetime.now() + timedelta(seconds=seconds + 30):%a %H:%M}"


def budget_in_words(budget: Budget) -> str:
    """Returns the spent and the remaining part of a site's privacy budget."""
    terms, spent = budget.privacy, budget.epsilon(budget.spent())
    return (
        f"ε = {spent:.2f} of {terms.epsilon:g} is spent at δ = {terms.delta:g}; {budget.left()} more contributions fit"
    )


def _waiting(progress: Progress) -> str:
    number, count = progress.round, f"{progress.done:.0f} of {progress.total:.0f}"
    match progress.awaited:
        case WaitReason.APPROVAL:
            return "waiting to be approved by whoever runs the experiment; it then goes on by itself"
        case WaitReason.PARTICIPANTS:
            return f"waiting for other participants: {count} have joined"
        case WaitReason.CONTRIBUTIONS:
            return f"round {number}: waiting for other participants: {count} have contributed"
        case WaitReason.MODEL:
            return f"round {number}: waiting for the new model"
        case WaitReason.END:
            return "waiting for the end: the last model is being measured"
        case WaitReason.RESUMPTION:
            return "the experiment is paused; waiting until it goes on"
        case _:
            return f"waiting for round {number}"


@contextmanager
def _warnings() -> Generator[None]:
    """Prints warnings on the current stderr within a ``with`` block."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Shown("%(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


class _Shown(logging.Formatter):
    """Messages that may quote the server."""

    def format(self, record: logging.LogRecord) -> str:
        return shown_lines(super().format(record))


def _report(done: RoundReport) -> str:
    if done.error is not None:
        return f"round {done.round}: nothing sent: {done.error.detail}"
    loss = "" if done.loss is None else f", train loss {done.loss:.4f}"
    return f"round {done.round}: sent {size(done.size)} after {done.seconds:.1f} s{loss}"


def _sum(totals: Totals) -> str:
    rounds = "1 round" if totals.rounds == 1 else f"{totals.rounds} rounds"
    return (
        f"{rounds}, sent {size(totals.bytes_up)}, received {size(totals.bytes_down)}, "
        f"trained for {totals.seconds:.0f} s"
    )
