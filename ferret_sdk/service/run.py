"""One experiment on a server: follow it, read its results, download its checkpoints."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from ferret_core.ledger.receipt import Receipt
from ferret_core.ledger.record import LedgerRecord
from ferret_core.protocol.digest import digest_file
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.base import RevocationCount
from ferret_core.protocol.resources.events import Event, EventPage
from ferret_core.protocol.resources.experiments import Artifact, Experiment
from ferret_core.protocol.resources.metrics import MetricPoint, MetricSeriesList, RoundUpdate
from ferret_core.protocol.resources.participants import Enrolment, EnrolmentInfo, Participant
from ferret_core.protocol.resources.rounds import (
    Contribution,
    LedgerEntry,
    LedgerPage,
    Rejection,
    Round,
    SumTranscripts,
)
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_core.protocol.tags_and_notes import retagged
from ferret_core.replica.export import CHAT_TEMPLATE, complete
from ferret_core.replica.model_card import Facts, Figures
from ferret_core.secure.transcript import Transcript
from ferret_sdk.http.problems import recorded
from ferret_sdk.http.retry import PATIENT
from ferret_sdk.http.safe_paths import checkpoint_file, require_room
from ferret_sdk.http.transport import MAX_ANSWER_BYTES, Model, Transport, list_items, read_model
from ferret_sdk.service import hub, notebook, progress_display
from ferret_sdk.service.base_model_weights import MANIFEST
from ferret_sdk.service.download import download, missing, require_empty
from ferret_sdk.service.events import follow
from ferret_sdk.service.hub import HubUpload

if TYPE_CHECKING:
    from pandas import DataFrame

POLL_SECONDS = 1.0
EDITS = 5
"""Attempts to change tags that others change too."""
LEDGER_PAGE = 200
LEDGER_PAGE_BYTES = MAX_ANSWER_BYTES // 4
LONGEST_RECORD_BYTES = 64 << 20
"""Size for a round with 100,000 participants that sign."""
NAMED_BYTES = 600
"""Maximum bytes of one participant in a ledger record."""
METRICS_BYTES = 128 << 20
"""Size for 350,000 points."""


class Run:
    """An experiment and its server. ``experiment`` is its last known state."""

    def __init__(self, transport: Transport, experiment: Experiment) -> None:
        self._transport = transport
        self.experiment = experiment
        self._path = f"/experiments/{experiment.id}"

    def __repr__(self) -> str:
        told = self.experiment
        return f"Run({self.id!r}, {told.name!r}, {told.shown_state}, round {told.round} of {told.rounds})"

    def _repr_html_(self) -> str:
        return notebook.of_experiment(self.experiment, self._transport.url)

    @property
    def id(self) -> str:
        """Id of the experiment, such as ``exp_5f0c9f6a3b1d2e47``."""
        return self.experiment.id

    @property
    def state(self) -> ExperimentState:
        """Last known state; :meth:`refresh` fetches the present one."""
        return self.experiment.state

    def refresh(self) -> Run:
        """Fetches the current state."""
        self.experiment = read_model(Experiment, self._transport.get(self._path, PATIENT))
        return self

    def specification(self) -> ExperimentSpec:
        """The specification; ``server.unexpected`` if this version cannot read it."""
        return read_model(ExperimentSpec, self.experiment.spec)

    def wait(self, timeout: float | None = None, *, progress: bool = True) -> Run:
        """Returns when the experiment has completed.

        ``progress``: each change is a line on stderr, or in a notebook a table that is kept up to date. Raises the
        experiment's error if it failed, ``experiment.conflict`` if it was cancelled, and ``experiment.timeout`` after
        ``timeout`` seconds; the experiment itself continues.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        show = progress_display.here() if progress else progress_display.silent
        while not self.refresh().state.finished:
            show(self)
            left = POLL_SECONDS if deadline is None else deadline - time.monotonic()
            if left <= 0:
                detail = f"{self.id} is {self.state.value} in round {self.experiment.round} after {timeout} seconds"
                raise FerretError(
                    "experiment.timeout", f"{detail}; it is still running: ferret experiment watch {self.id}"
                )
            time.sleep(min(POLL_SECONDS, left))
        show(self)
        self.require_completed()
        return self

    def require_completed(self) -> None:
        """Raises the error of an experiment that ended without a result."""
        if self.state is ExperimentState.CANCELLED:
            raise FerretError("experiment.conflict", f"{self.id} was cancelled in round {self.experiment.round}")
        if self.state is ExperimentState.FAILED:
            raise recorded(self.experiment.error, f"{self.id} failed")

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yields events as they happen, each once, until the last. A broken connection is resumed."""
        return follow(self._transport, self.id, after)

    def past_events(self, after: int = 0) -> list[Event]:
        """Returns the next past events, oldest first, without waiting for more; [] at the end."""
        return read_model(EventPage, self._transport.get(f"{self._path}/events", after=after)).items

    def rounds(self) -> Iterator[Round]:
        """Yields the rounds, oldest first, each with its state, metrics and bytes."""
        return list_items(self._transport, f"{self._path}/rounds", Round)

    def round(self, number: int) -> Round:
        """Returns one round; the first is 1. Raises ``round.not_found``."""
        return read_model(Round, self._transport.get(f"{self._path}/rounds/{number}"))

    def update_statistics(self, round: int | None = None) -> RoundUpdate:
        """Returns the update statistics of ``round`` (default: the last committed one).

        These are step, noise and weights by block, K_l, and the participants' agreement. Raises ``round.not_found`` and
        ``round.uncommitted``.
        """
        number = self.refresh().experiment.round if round is None else round
        return read_model(RoundUpdate, self._transport.get(f"{self._path}/rounds/{number}/update"))

    def contributions(self, round: int | None = None) -> Iterator[Contribution]:
        """Yields the contributions of ``round``, or of all rounds, each with its state and size in bytes."""
        return list_items(self._transport, f"{self._path}/contributions", Contribution, round=round)

    def metrics(self) -> dict[str, list[MetricPoint]]:
        """Returns the points of every metric by name, in the order of rounds."""
        answer = read_model(MetricSeriesList, self._transport.get(f"{self._path}/metrics", at_most=METRICS_BYTES))
        return {series.name: series.points for series in answer.series}

    def to_csv(self) -> str:
        """Returns the metrics as CSV: one row per round, one column per metric."""
        answer = self._transport.request("GET", f"{self._path}/metrics", headers={"Accept": "text/csv"})
        return answer.body.decode()

    def to_pandas(self, what: Literal["metrics", "rounds"] = "metrics") -> DataFrame:
        """Returns a table with one row per round: the metrics, or the rounds with their states and bytes.

        Raises ``dependency.missing`` if pandas is not installed.
        """
        return notebook.of_metrics(self.metrics()) if what == "metrics" else notebook.of_rounds(self.rounds())

    def artifacts(self) -> list[Artifact]:
        """Returns the files of all kept checkpoints, each with its round, size in bytes and digest."""
        return list(list_items(self._transport, f"{self._path}/artifacts", Artifact))

    def rejections(self, round: int | None = None) -> Iterator[Rejection]:
        """Yields the refused uploads by round, participant and reason."""
        return list_items(self._transport, f"{self._path}/rejections", Rejection, round=round)

    def participants(self, group: str | None = None) -> Iterator[Participant]:
        """Yields the real participants, or only those in the ``group``, by name, including revoked ones."""
        return list_items(self._transport, f"{self._path}/participants", Participant, group=group)

    def codes(self, group: str | None = None) -> Iterator[EnrolmentInfo]:
        """Yields the enrolment codes of the experiment or of the ``group`` with their use, newest first."""
        return list_items(self._transport, f"{self._path}/enrolments", EnrolmentInfo, group=group)

    def create_code(self, seconds: int = 86_400, group: str | None = None, *, approval: bool = False) -> Enrolment:
        """Creates a one-time code with which a participant joins the experiment within ``seconds``.

        Codes of a ``group``, such as the sites of one network, can be listed and revoked together. With ``approval``
        the participant waits for :meth:`approve`.
        """
        wanted = {"expires_seconds": seconds, "group": group, "approval": approval}
        return read_model(Enrolment, self._transport.post(f"{self._path}/enrolments", wanted).json())

    def revoke_code(self, id: str) -> EnrolmentInfo:
        """Revokes an unused code; a used one stays as it is. Raises ``enrolment.not_found``."""
        return self._post(EnrolmentInfo, f"/enrolments/{quote(id, safe='')}:revoke")

    def approve(self, name: str) -> Participant:
        """Approves a pending participant. Raises ``participant.not_found`` and ``participant.conflict``."""
        return self._post(Participant, f"/participants/{quote(name, safe='')}:approve")

    def refuse(self, name: str, reason: str | None = None) -> Participant:
        """Refuses a pending participant permanently; it receives the ``reason``. Raises as :meth:`approve`."""
        return self._post(Participant, f"/participants/{quote(name, safe='')}:refuse", {"reason": reason})

    def revoke_codes(self, group: str) -> int:
        """Revokes the group's unused codes. Returns their number. Raises ``enrolment.not_found``."""
        return self._post(RevocationCount, "/enrolments:revoke", {"group": group}).revoked

    def revoke_group(self, group: str, reason: str | None = None) -> int:
        """Removes all participants of the group, and returns their number. Raises ``participant.not_found``."""
        return self._post(RevocationCount, "/participants:revoke", {"group": group, "reason": reason}).revoked

    def revoke(self, name: str, reason: str | None = None) -> Participant:
        """Removes a participant. Its token is refused, it receives the ``reason``, and rounds continue without it.

        Its accepted contributions stay in the ledger. Raises ``participant.not_found``.
        """
        return self._post(Participant, f"/participants/{quote(name, safe='')}:revoke", {"reason": reason})

    def pause(self) -> Run:
        """Pauses, even within a round; accepted contributions are kept. Pausing a paused experiment changes nothing."""
        return self._move("pause")

    def resume(self) -> Run:
        """Continues a paused experiment; resuming a running one changes nothing."""
        return self._move("resume")

    def cancel(self) -> Run:
        """Stops the experiment permanently; cancelling a cancelled one changes nothing."""
        return self._move("cancel")

    def extend(self, rounds: int) -> Run:
        """Adds ``rounds`` to the number the experiment had at the last poll, so a repeated request adds them once.

        A completed experiment runs again. A schedule of the local learning rate stretches over the new number of
        rounds. Raises ``extension.refused``, ``experiment.conflict``.
        """
        seen = self.experiment
        return self._move("extend", {"rounds": rounds, "expected_rounds": seen.round if seen.stopped else seen.rounds})

    def clone(
        self, changes: Mapping[str, Any] | None = None, key: str | None = None, *, project: str | None = None
    ) -> Run:
        """Creates an experiment with this one's specification, changed by a JSON Merge Patch (RFC 7396).

        None removes a member. A new algorithm, dataset or partition drops the previous one's options;
        ``ferret_core.experiment.diff.differences`` of the two specifications lists the result. The experiment belongs
        to ``project`` (default: this one's).
        """
        headers = {"Idempotency-Key": key or secrets.token_hex(16)}
        query = {"project": project}
        answer = self._transport.post(f"{self._path}:clone", dict(changes or {}), headers=headers, query=query)
        return Run(self._transport, read_model(Experiment, answer.json()))

    def edit(
        self,
        *,
        name: str | None = None,
        notes: str | None = None,
        priority: int | None = None,
        tag: Sequence[str] = (),
        untag: Sequence[str] = (),
    ) -> Run:
        """Changes the name, the notes (Markdown; "" removes them), the priority (1 to 8), or tags.

        Values that are not given stay. Concurrent changes of tags are merged; ``experiment.changed`` is raised if they
        never stop.
        """
        given = {"name": name, "notes": notes, "priority": priority}
        changes = {key: value for key, value in given.items() if value is not None}
        if not (tag or untag):
            return self._edit(changes, {})
        for left in reversed(range(EDITS)):
            answer = self._transport.request("GET", self._path)
            tags = retagged(read_model(Experiment, answer.json()).tags, tag, untag)
            try:
                return self._edit({**changes, "tags": tags}, {"If-Match": answer.headers.get("etag", "*")})
            except FerretError as error:
                if error.code != "experiment.changed" or not left:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _edit(self, changes: Mapping[str, Any], headers: Mapping[str, str]) -> Run:
        headers = {"Content-Type": "application/merge-patch+json", **headers}
        self.experiment = read_model(Experiment, self._transport.patch(self._path, changes, headers).json())
        return self

    def archive(self) -> Run:
        """Archives a finished experiment: it is kept, but hidden from lists."""
        return self._move("archive")

    def unarchive(self) -> Run:
        """Takes it out of the archive: lists show it again."""
        return self._move("unarchive")

    def delete(self) -> None:
        """Deletes a finished experiment with all its results; deleting it twice is not an error."""
        try:
            self._transport.request("DELETE", self._path)
        except FerretError as error:
            if error.code != "experiment.not_found":
                raise

    def _move(self, verb: str, body: dict[str, int] | None = None) -> Run:
        """Requests a transition. Repeated requests count once."""
        self.experiment = self._post(Experiment, f":{verb}", body)
        return self

    def _post(self, kind: type[Model], path: str, body: Mapping[str, Any] | None = None) -> Model:
        return read_model(kind, self._transport.post(f"{self._path}{path}", body, repeatable=True).json())

    def ledger(self, after: int = 0) -> Iterator[LedgerEntry]:
        """Yields the records of the rounds after ``after``, in order."""
        record = NAMED_BYTES * max(1, self.experiment.participants)
        limit = min(LEDGER_PAGE, max(1, LEDGER_PAGE_BYTES // record))
        at_most = min(LONGEST_RECORD_BYTES, max(MAX_ANSWER_BYTES, 2 * record))
        while True:
            answer = self._transport.get(f"{self._path}/ledger", PATIENT, at_most=at_most, after=after, limit=limit)
            if not (entries := read_model(LedgerPage, answer).items):
                return
            if (last := read_model(LedgerRecord, entries[-1].record).round) <= after:
                message = f"is in the page of the ledger that begins after round {after}"
                raise FerretError.of_field("server.unexpected", "round", last, message)
            yield from entries
            after = last

    def receipt(self, round: int, participant: str) -> Receipt:
        """Returns the proof that the round's record holds the participant's contribution.

        It is verified except for the record's hash, which is the ledger's. Raises ``round.uncommitted``, and
        ``receipt.not_found`` with the reason.
        """
        path = f"{self._path}/rounds/{round}/receipts/{quote(participant, safe='')}"
        receipt = read_model(Receipt, self._transport.get(path))
        receipt.verified()
        return receipt

    def transcripts(self, round: int) -> list[Transcript]:
        """Returns the transcripts of a committed round, one for each group; none for a round without secure sums."""
        answer = self._transport.get(f"{self._path}/rounds/{round}/transcripts", PATIENT)
        return [read_model(Transcript, found) for found in read_model(SumTranscripts, answer).transcripts]

    def download_masked(self, round: int, participant: str, target: Path, *, size: int, digest: str) -> None:
        """Downloads the masked vector of a survivor of a secure sum, of ``size`` bytes, to ``target``.

        Raises ``storage.corrupt`` if it does not have the ``digest``.
        """
        path = f"{self._path}/rounds/{round}/masked/{quote(participant, safe='')}"
        download(self._transport, path, target, size=size, digest=digest)

    def update(self, round: int, size: int | None = None) -> bytes:
        """Returns the blob that moves the global model through ``round``; the ledger record holds its digest.

        ``size`` is the number of bytes in the ledger, which is fetched if it is not given. A longer response is
        ``server.unexpected``.
        """
        if size is None:
            size = next((item.update_size for item in self.ledger(after=round - 1)), MAX_ANSWER_BYTES)
        path = f"{self._path}/updates/{round}"
        return self._transport.request("GET", path, attempts=PATIENT, at_most=size).body

    def export(self, folder: str | Path, round: int | None = None) -> Path:
        """Downloads the checkpoint of ``round`` (the latest by default) into the new or empty ``folder``.

        The folder appears only when every file is complete and has its digest; transformers can load it. It also
        contains a model card, ``README.md``, and a chat template with the prompt format of training. Raises
        ``artifact.not_found`` if that checkpoint does not exist.
        """
        folder = Path(folder).expanduser().resolve()
        files = self.checkpoint(round)
        require_empty(folder, "folder")
        part = folder.with_name(f".{folder.name}.part")
        part.mkdir(parents=True, exist_ok=True)
        self.fetch(files, part)
        self.describe(part, files[0].round)
        if folder.exists():
            folder.rmdir()
        part.rename(folder)
        return folder

    def push_to_hub(
        self,
        repository: str,
        round: int | None = None,
        *,
        folder: str | Path | None = None,
        branch: str | None = None,
        public: bool = False,
    ) -> HubUpload:
        """Uploads the checkpoint of ``round`` (the latest by default), with card and chat template, to a hub
        repository.

        ``repository`` is OWNER/NAME on the Hugging Face hub; the token is in ``HF_TOKEN``. The checkpoint is exported
        to ``folder``, or to a temporary one. A ``folder`` with an earlier export is sent as it is, including an edited
        card. The repository is created if it is missing, private unless ``public``; so is ``branch`` (default: the main
        one). A repeated call sends what is missing. Raises ``hub.refused``, ``hub.conflict``, ``hub.unreachable``,
        ``artifact.not_found`` and ``dependency.missing``.
        """
        files, target = self.checkpoint(round), hub.Target(repository, branch, public)
        hub.make(target)  # before a download that may take long
        with ExitStack() as stack:
            wanted = Path(folder or Path(stack.enter_context(TemporaryDirectory(prefix="ferret-push-"))) / "model")
            found = wanted.expanduser()
            if not _holds(found, files):
                self.export(found, files[0].round)
            return hub.push(found, target, json.loads((found / MANIFEST).read_bytes()))

    def describe(self, folder: Path, round: int) -> None:
        """Adds chat template and model card to the folder with the checkpoint of ``round``, from the server's current
        data.
        """
        told = self.refresh().experiment
        manifest = folder / MANIFEST
        facts = Facts(
            experiment=told.id,
            spec=self.specification(),
            round=round,
            rounds=told.rounds,
            participants=told.participants,
            digest=str(json.loads(manifest.read_bytes())["digest"]) if manifest.is_file() else None,
            base_digest=told.base_digest,
            metrics={name: Figures(found.first, found.last, found.best) for name, found in told.metrics.items()},
        )
        complete(folder, facts)

    def fetch(self, files: list[Artifact], folder: Path, on_bytes: Callable[[int, int], None] | None = None) -> None:
        """Downloads the files into the existing ``folder``. Files with the right digest are kept.

        ``on_bytes`` receives the number of bytes present and their total. Raises ``server.unexpected`` for names that
        cannot belong to a checkpoint, and ``storage.full``, before any request, if not all of it fits.
        """
        places = [(file, checkpoint_file(folder, file.name)) for file in files]
        require_room(folder, sum(missing(target, file.size) for file, target in places))
        done, total = 0, sum(file.size for file in files)
        for file, target in places:
            told = None if on_bytes is None else partial(_add, on_bytes, done, total)
            path = f"{self._path}/artifacts/{file.id}"
            download(self._transport, path, target, size=file.size, digest=file.digest, on_bytes=told)
            done += file.size

    def checkpoint(self, round: int | None = None) -> list[Artifact]:
        """Returns the files of the checkpoint of ``round``, the latest by default. Raises ``artifact.not_found``."""
        found = [artifact for artifact in self.artifacts() if artifact.kind == "checkpoint"]
        written = sorted({artifact.round for artifact in found})
        wanted = round if round is not None else max(written, default=None)
        if wanted not in written:
            rounds = (
                f"there are checkpoints of rounds {', '.join(map(str, written))}" if written else "there is none yet"
            )
            raise FerretError(
                "artifact.not_found", f"{self.id} has no checkpoint of round {wanted}: {rounds}; {REBUILD}"
            )
        return [artifact for artifact in found if artifact.round == wanted]

    def best_checkpoint(self) -> list[Artifact]:
        """Returns the files of the best kept checkpoint. Raises ``artifact.not_found`` while none is evaluated."""
        found = [artifact for artifact in self.artifacts() if artifact.best]
        if not found:
            detail = f"{self.id} has no evaluated checkpoint yet: wait for an evaluation, or name a round"
            raise FerretError("artifact.not_found", detail)
        return found


REBUILD = "the ledger rebuilds any other round: ferret experiment replay"


def _holds(folder: Path, files: list[Artifact]) -> bool:
    """True if ``folder`` has the checkpoint's files unchanged, except the chat template, which export replaces."""
    places = [(checkpoint_file(folder, file.name), file) for file in files if file.name != CHAT_TEMPLATE]
    return all(path.is_file() and digest_file(path) == file.digest for path, file in places)


def _add(on_bytes: Callable[[int, int], None], before: int, total: int, count: int) -> None:
    on_bytes(before + count, total)
