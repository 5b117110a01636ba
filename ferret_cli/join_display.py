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
from ferret_core.experiment.readers import protected_records, readers
from ferret_core.protocol.errors import Exit
from ferret_core.protocol.formatting import size
from ferret_core.protocol.sanitize import shown, shown_lines
from ferret_core.protocol.states import ExperimentState, WaitReason
from ferret_core.system.heartbeat import Heartbeat
from ferret_core.system.permissions import restrict_home
from ferret_sdk.participant.exposure import Exposure
from ferret_sdk.participant.invitation import Inspection
from ferret_sdk.participant.participant import Participant
from ferret_sdk.participant.privacy_budget import Budget
from ferret_sdk.participant.record_account import RecordTotals
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
    "audit.broken": "keep the file, and compare it with a backup: a person or a program has changed it",
    "secret.exposed": "close the file, and ask the person who invited you for a new code if somebody may have read it",
    "consent.missing": "read the message above; if this site consents, run the same command with --yes",
    "terms.invalid": "correct the file; a page on it is docs/sites/site-terms.md",
    "terms.refused": "ask the person who invited you to change the value above; or, if this site accepts it, change "
    "site.toml and run the same command again",
    "terms.limit_reached": "if this site agrees to more, change its terms (site.toml) and run the same command again",
    "participant.failed": "each attempt spends privacy: remove the cause above before you run the same command again",
    "training.unsupported": "take part without --site, or tell the person who invited you",
    "memory.exhausted": "this machine has too little memory for the model; tell the person who invited you",
}
"""Next steps for a site, which cannot follow advice for operators of a server."""

Say = Callable[[str], None]
Paused = Callable[[], AbstractContextManager[None]]


TRUST = "You trust the server to add the noise, and to show your contribution to nobody."
"""The warning of a site where the server adds the noise."""


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
        say("stopped. Your place and the finished training are kept: run the same command again to continue")
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
    body = size(preview.size) + (f", BLAKE3 {preview.digest}" if preview.digest else "")
    say(f"this is the whole request: {preview.method} {preview.path}, a body of {body}")
    if preview.digest is None:
        say("masks, noise or random octets give the body another digest each time")
    if preview.sum_bytes:
        say(f"the secure sum takes {size(preview.sum_bytes)} more: one-time keys, encrypted shares and signatures")
    if preview.norm is not None:
        say(f"the vector had L2 norm {preview.norm:.4g} before it was clipped and noised; that stays here")
    say("nothing of it was sent. Your place is kept: the same command without --dry-run takes part")


def show_inspection(found: Inspection, *, json: bool) -> None:
    """Prints the experiment of a code, which stays unused."""
    if json:
        emit({**found._asdict(), "invitation": found.invitation.model_dump(mode="json"), "spec": found.invitation.spec})
    else:
        table(("", ""), _inspected(found))
    say("the code is unused: the same command without --inspect takes part")


def _inspected(found: Inspection) -> Iterator[tuple[str, str]]:
    spec, invitation = found.spec, found.invitation
    chosen = ", ".join(f"{name} {value}" for name, value in spec.algorithm.options.items() if name != "local")
    loaded = "known once the server has loaded the model"
    yield "experiment", f"{invitation.name} ({invitation.experiment}), {invitation.state.value}"
    yield "model", f"{spec.model.source}{'@' + spec.model.revision if spec.model.revision else ''}"
    yield "its digest", invitation.base_digest or loaded
    yield "your data", "one JSON object per line: instruction, input, output; or messages"
    limit = spec.prompt.max_tokens or "the model's limit of"
    yield "prompt", f"template {spec.prompt.template}, at most {limit} tokens"
    yield "algorithm", spec.algorithm.name + (f": {chosen}" if chosen else "")
    yield "rounds", str(spec.rounds)
    sent = found.bytes_per_round
    header = "" if spec.summed else " and a header of about 1 kB"
    yield "sent per round", loaded if sent is None else f"{size(sent)}{header}"
    yield "smallest group", f"a round may end with {found.participants} real participants"
    if (privacy := spec.privacy).of_records:
        promised = f"ε = {privacy.epsilon:g} at δ = {privacy.delta:g}"
        yield (
            "protected",
            f"{protected_records(privacy.unit)}, {promised}; you need at least {privacy.records_least} of them",
        )
        if privacy.field is not None:
            yield "its field", f"name yours: --field unit={privacy.field}"
    yield "approval", "you wait until the researcher approves you" if invitation.approval else "none: you begin at once"
    yield "code expires", f"{invitation.expires_at:%Y-%m-%d %H:%M} UTC"
    yield (
        "your terms",
        "allow it, as far as known before training" if found.refusal is None else f"refuse it: {found.refusal}",
    )
    central = spec.privacy.central
    for reader in readers(separate=found.separate, least_summed=spec.secure.least_summed, central=central):
        yield "readers", str(reader)
    if central:
        yield "trust", TRUST


def _run(participant: Participant, asked: JoinOptions, watcher: Watcher, tell: Say, paused: Paused) -> ExperimentState:
    def report(done: RoundReport) -> None:
        tell(_report(done))
        if (spent := participant.record_privacy) is not None:
            tell(f"privacy: {records_in_words(spent)}")
        if asked.json:
            emit({**done._asdict(), "error": done.error and done.error.to_json()})

    def consent(exposure: Exposure) -> bool:
        for line in _exposed(exposure):
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


def _exposed(exposure: Exposure) -> Iterator[str]:
    """Yields what a contribution can reveal, and its readers, before anything is trained."""
    if exposure.epsilon is not None:
        place = "that the server adds to the sum" if exposure.trusts_server else "in the sum"
        yield f"Noise {place} hides each of your records, with ε = {exposure.epsilon:g} after all rounds."
    else:
        yield f"A contribution is computed from {exposure.examples} examples. It can reveal that a text was among them."
    yield from map(
        str,
        readers(separate=exposure.separate, least_summed=exposure.least_summed, central=exposure.trusts_server),
    )
    if exposure.trusts_server:
        yield TRUST


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
            yield Lines(), say_with_time, nullcontext
        return

    @contextmanager
    def paused() -> Generator[None]:
        status.stop()
        yield
        status.start()

    with console.status("") as status, _warnings():
        yield (
            lambda progress: status.update(shown(words(progress))),
            lambda text: console.print(shown_lines(text), soft_wrap=True, highlight=False, markup=False, emoji=False),
            paused,
        )


def say_with_time(text: str) -> None:
    """Prints a line of a log on stderr, after the local time."""
    say(f"{datetime.now():%Y-%m-%d %H:%M:%S}  {text}")


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
            say_with_time(
                words(progress if progress.stage in {Stage.WAIT, Stage.OUTAGE} else progress._replace(done=0))
            )


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


def records_in_words(totals: RecordTotals) -> str:
    """Returns the spent part of the ε of a site's records in an experiment."""
    return f"ε = {totals.epsilon:.2f} of {totals.limit:.2f} is spent at δ = {totals.delta:g}"


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
            return "waiting for the researcher's approval; then this continues automatically"
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
