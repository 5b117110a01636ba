"""A real participant: trains where its data are, and sends only the contribution."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ferret_core.catalog import ResolvedExperiment
from ferret_core.client.hooks import Site
from ferret_core.client.state import ClientState, StateFolder
from ferret_core.ledger.record import LedgerRecord
from ferret_core.privacy.accounting import require_accounting
from ferret_core.protocol.display_name import checked
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.participants import Enrolled
from ferret_core.protocol.signatures import public_key
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_sdk.http.transport import Transport, read_model
from ferret_sdk.participant import membership
from ferret_sdk.participant.assignment_poll import AssignmentPoll
from ferret_sdk.participant.contribution_preview import Preview, PreviewBuilder
from ferret_sdk.participant.egress_log import SentLog
from ferret_sdk.participant.exposure import Agreement, Exposure
from ferret_sdk.participant.local_examples import Examples, read_examples
from ferret_sdk.participant.local_training import LocalTraining
from ferret_sdk.participant.lock import sole
from ferret_sdk.participant.membership import Membership, note_end
from ferret_sdk.participant.paths import ParticipantPaths
from ferret_sdk.participant.privacy_budget import Budget
from ferret_sdk.participant.receipts import Receipts
from ferret_sdk.participant.record_account import RecordAccount, RecordTotals
from ferret_sdk.participant.replica_sync import ReplicaSync
from ferret_sdk.participant.round_loop import RoundLoop
from ferret_sdk.participant.secure_sums import SecureSums
from ferret_sdk.participant.site_terms import Terms, of_home
from ferret_sdk.participant.spool import Spool
from ferret_sdk.participant.terms_enforcement import Enforcement
from ferret_sdk.participant.uploader import Uploader
from ferret_sdk.participant.usage_counter import Usage
from ferret_sdk.service.download import require_empty
from ferret_sdk.service.progress import RoundReport, Totals, Watcher, log_outages
from ferret_sdk.service.server_address import ClientSettings, split

if TYPE_CHECKING:
    from ferret_core.datasets.base import Example
    from ferret_core.replica.checkpoint import Manifest

log = logging.getLogger(__name__)


class Participant:
    """A participant of one experiment::

        participant = Participant.enrol("https://ferret.example.org", code, "clinic-7")
        participant.run("records.jsonl")

    It polls for work, follows the global model by the ledger, and runs the same code as a simulated client. The server
    is not trusted: no response leads to a file outside ``home``, and an invalid response ends the participation with
    ``server.unexpected``. The site's ``terms``, by default those in ``site.toml`` in ``home``, apply to every request
    of the server. Every request is recorded in the log in ``home`` before it is sent.
    """

    def __init__(
        self,
        member: Membership,
        home: str | Path,
        *,
        insecure_http: bool = False,
        ca: str | Path | None = None,
        terms: Terms | None = None,
        base: Path | str | None = None,
    ) -> None:
        self.member = member
        home, settings = Path(home).expanduser(), ClientSettings()
        self._transport = Transport(
            member.url,
            member.token,
            insecure_http=insecure_http or settings.insecure_http,
            ca=Path(ca) if ca else settings.ca,
            on_request=SentLog(home).noting(member.experiment, member.name),
        )
        places = ParticipantPaths(home, member.experiment, member.participant)
        self._lock, self._ended = places.lock, places.ended
        self._site: Site | None = None
        self._consent: Callable[[Exposure], bool] | None = None
        self._state = ClientState(StateFolder(places.memory))
        self._spool = Spool(places.upload)
        terms = of_home(home) if terms is None else terms
        self._records = RecordAccount(home, member.experiment)
        self._enforcement = Enforcement(terms, Usage(places.usage), member.name, home, self._records)
        self._follower = ReplicaSync(
            self._transport, member.experiment, places.base, self._follow, require=self._require, base=base
        )
        self._agreement = Agreement(places.agreed)
        self._sums = SecureSums(self._transport, places.secure, member, terms.secure)
        self._receipts = Receipts(places.receipts, member, self._why_missing)
        self._sending = Uploader(self._transport, self._spool, self._receipts.acknowledged)

    @classmethod
    def enrol(
        cls,
        url: str,
        code: str,
        name: str,
        home: str | Path | None = None,
        *,
        insecure_http: bool = False,
        ca: str | Path | None = None,
        terms: Terms | None = None,
        base: Path | str | None = None,
    ) -> Participant:
        """Exchanges a one-time code for a token, stored under ``home`` (``FERRET_HOME``) for its owner only.

        ``name`` is the display name, in any script and of up to 200 characters; the server derives the id
        ``member.name`` from it. A code that was exchanged here before returns that participant again.

        Raises ``enrolment.invalid``, ``enrolment.used``, ``enrolment.other_server`` for a code of another server than
        the one at ``url``, ``terms.invalid``, and ``request.invalid`` for an invalid name, or for plain http to another
        machine without ``insecure_http``. ``ca`` is the file of the certificate authorities to trust instead of the
        usual ones. ``base`` is the folder with the base model's weights at this site, or ``"hub"`` to get them from the
        hub if the experiment names a model and a revision there; by default they are downloaded from the server.
        """
        settings = ClientSettings()
        home = Path(home or settings.home).expanduser()
        insecure_http, ca = insecure_http or settings.insecure_http, Path(ca) if ca else settings.ca
        display_name = checked("name", name)
        terms = of_home(home) if terms is None else terms  # a code works once: it is not spent if they are invalid
        if terms.privacy is not None:
            require_accounting()
        address = split(url).url
        transport = Transport(address, insecure_http=insecure_http, ca=ca, on_request=SentLog(home).noting())
        member = membership.find(home, address, code)
        if member is None:
            key = membership.site_key(home)
            terms.secure.require_others(public_key(key))
            asked = {"code": code, "display_name": display_name, "public_key": public_key(key)}
            headers = {"Idempotency-Key": membership.enrolment_key(address, code, key)}
            answer = transport.post("/participants", asked, headers=headers).json()
            member = Membership.of(address, read_model(Enrolled, answer), code, key)
            membership.save(home, member)
        participant = cls(member, home, insecure_http=insecure_http, ca=ca, terms=terms, base=base)
        participant._transport.traffic.add(transport.traffic.up, transport.traffic.down)
        return participant

    def run(
        self,
        examples: Examples,
        on_round: Callable[[RoundReport], None] | None = None,
        on_progress: Watcher = log_outages,
        *,
        fields: Mapping[str, str] | None = None,
        site: Site | None = None,
        give_up_after: float | None = None,
        consent: Callable[[Exposure], bool] | None = None,
    ) -> ExperimentState:
        """Takes part until the experiment is finished and returns its final state. Waits while it is paused.

        ``examples`` have an instruction, an input and an output: the path of a JSON Lines file, or rows (a list of
        dicts, a generator, a Hugging Face dataset). They are read here, once, and never sent. ``fields`` maps field
        names, such as ``{"instruction": "question"}``. ``site`` holds functions that train and evaluate instead of
        Ferret's. A contribution that was made before a crash, here or at the server, is sent and not recomputed.
        ``on_progress`` receives every step in between, from this thread. An outage is waited for; after
        ``give_up_after`` seconds without a response, if given, it raises ``server.unreachable``. ``consent`` is called
        once before training with the exposure of a contribution; False ends the participation with ``consent.missing``.
        Without ``consent`` the caller has consented.

        Raises ``dataset.invalid`` before any request, ``participant.in_use`` while another process on this machine runs
        this participant, ``training.unsupported`` if the experiment's algorithm does not support the site's functions,
        and ``terms.refused`` and ``terms.limit_reached`` once the site's terms leave nothing to do.
        """
        mine = read_examples(examples, fields)
        self._site, self._consent = site, consent
        with sole(self._lock, self.member.display_name):
            return self._run(mine, on_round, on_progress, give_up_after)

    def _run(
        self,
        examples: list[Example],
        on_round: Callable[[RoundReport], None] | None,
        on_progress: Watcher,
        give_up_after: float | None,
    ) -> ExperimentState:
        self._follower.watcher = self._sending.watcher = on_progress
        polling = AssignmentPoll(self._transport, self.member, on_progress, give_up_after)
        enforcement = self._enforcement
        key, site = self.member.key, self._site
        training = LocalTraining(
            self._follower,
            self._state,
            self._spool,
            enforcement,
            examples,
            on_progress,
            self._ask,
            key,
            site,
            self._sums,
        )
        rounds = RoundLoop(self._transport, self._spool, self._sending, training, enforcement, self._sums)
        enforcement.wait(on_progress)
        while not (poll := polling.ask()).experiment_state.finished:
            self._sums.restock(poll.prekeys)
            report = rounds.work(poll.assignment) if poll.step is None else rounds.sum_up(poll.step)
            if report is None:
                polling.wait(poll)
            elif on_round is not None:
                on_round(report)
            enforcement.wait(on_progress)
        self._spool.clear()
        self._sums.clear()
        note_end(self._ended, poll.experiment_state)
        self._await_receipts()
        return poll.experiment_state

    @property
    def totals(self) -> Totals:
        """The participation's totals so far."""
        traffic = self._transport.traffic
        return Totals(self._sending.rounds, traffic.up, traffic.down, self._sending.seconds)

    @property
    def budget(self) -> Budget | None:
        """The site's privacy budget, if its terms have one."""
        return self._enforcement.budget

    @property
    def record_privacy(self) -> RecordTotals | None:
        """ε of the site's records so far and its limit, if the experiment protects records; None before the first
        release."""
        return self._records.totals()

    def _require(self, spec: ExperimentSpec, base_digest: str | None) -> None:
        """Checks, before any download, the base model and the experiment.

        The base model must be the one that the participant began with. The experiment must fit the site's terms and
        functions.
        """
        self._enforcement.require_experiment(spec, base_digest)
        self._agreement.require_base(base_digest)
        if self._site is not None:
            self._site.require(ResolvedExperiment.of(spec))

    def _ask(self, exposure: Exposure) -> None:
        """Raises ``consent.missing`` if people do not consent to the exposure."""
        if self._consent is None or self._agreement.covers(exposure):
            return
        if not self._consent(exposure):
            message = f"nothing was trained: a contribution may reveal single examples, {', '.join(exposure.reasons)}"
            raise FerretError("consent.missing", message)
        self._agreement.consent(exposure)

    def _follow(self, record: LedgerRecord) -> None:
        contribution = dict(record.contributions).get(self.member.name)
        if contribution is not None:
            self._state.commit(contribution)
        self._enforcement.follow(record)
        self._sums.follow(record)
        self._receipts.follow(record)

    def _await_receipts(self) -> None:
        """Waits for the receipts of the last rounds."""
        if not self._receipts.waiting:
            return
        try:
            for record in self._follower.records_to_the_end():
                self._receipts.follow(record)
                if not self._receipts.waiting:
                    return
        except FerretError as error:
            if error.code in {"ledger.broken", "server.unexpected"}:
                raise
            log.warning("the last receipt is missing, %s; it comes when this is run again", error.detail)

    def _why_missing(self, number: int) -> str:
        """Returns the server's reason that an acknowledged contribution is missing in the round's record."""
        path = f"/experiments/{self.member.experiment}/rounds/{number}/receipts/{self.member.name}"
        try:
            self._transport.get(path)
        except FerretError as error:
            return error.detail
        return "it is in the round, which the ledger contradicts"

    def preview(
        self,
        examples: Examples,
        on_progress: Watcher = log_outages,
        *,
        fields: Mapping[str, str] | None = None,
        site: Site | None = None,
    ) -> Preview:
        """Trains on the current model and shows what a contribution to the next round would send; sends none of it.

        Requests no assignment. Raises as :meth:`run`, and ``experiment.conflict`` before the model exists.
        """
        self._follower.watcher = on_progress
        mine = read_examples(examples, fields)
        self._site = site
        previewing = PreviewBuilder(self._transport, self.member, self._follower, self._state, self._enforcement, site)
        with sole(self._lock, self.member.display_name):
            return previewing.make(mine, on_progress)

    def keep_model(self, folder: str | Path) -> Manifest:
        """Writes the tuned model as a checkpoint to the new or empty ``folder``, which appears when it is complete.

        The model is rebuilt from the base model and the ledger, with every record and the final digest checked: the
        server's checkpoint is not needed. The folder also has a model card and a chat template, as with
        :meth:`Run.export`. Raises ``ledger.broken``, and ``request.invalid`` for a folder that is in use.
        """
        from ferret_core.replica.checkpoint import write_folder

        folder = Path(folder).expanduser()
        require_empty(folder, "folder")
        with self._follower.at_the_end() as (run, replica):
            return write_folder(replica, run.id, folder, lambda draft: run.describe(draft, replica.round))
