"""The experiment of an enrolment code, read before the code is used."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ferret_core.catalog import ResolvedExperiment
from ferret_core.experiment.estimate import arrays_bytes
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.participants import Invitation
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.rounds import sampling
from ferret_core.secure.roster import survivors_needed
from ferret_sdk.http.transport import Transport, read_model
from ferret_sdk.participant.egress_log import SentLog
from ferret_sdk.participant.site_terms import Terms, of_home
from ferret_sdk.participant.terms_enforcement import Enforcement
from ferret_sdk.participant.usage_counter import Usage
from ferret_sdk.service.server_address import ClientSettings, split


class Inspection(NamedTuple):
    """An experiment that a site is invited to.

    ``bytes_per_round`` is the size of a contribution's arrays, with masks also of keys and shares; None until the
    server has loaded the model. ``participants`` is the least number of real participants that a round may end with.
    ``separate`` is True if the other participants can read each contribution on its own. ``refusal`` is the reason why
    the site's terms refuse the experiment; None if they allow its algorithm, model and prompt.
    """

    invitation: Invitation
    spec: ExperimentSpec
    bytes_per_round: int | None
    participants: int
    separate: bool
    refusal: str | None


def inspect(
    url: str,
    code: str,
    home: str | Path | None = None,
    *,
    insecure_http: bool = False,
    ca: str | Path | None = None,
    terms: Terms | None = None,
) -> Inspection:
    """Returns the experiment of ``code``, which stays unused. The request is in the log of ``home``.

    Raises as :meth:`Participant.enrol`: ``enrolment.invalid``, ``enrolment.used``, ``enrolment.other_server``,
    ``terms.invalid``, and ``server.unexpected`` for a specification that this version cannot read.
    """
    settings = ClientSettings()
    home = Path(home or settings.home).expanduser()
    terms = of_home(home) if terms is None else terms
    transport = Transport(
        split(url).url,
        insecure_http=insecure_http or settings.insecure_http,
        ca=Path(ca) if ca else settings.ca,
        on_request=SentLog(home).noting(),
    )
    found = read_model(Invitation, transport.post("/enrolments:inspect", {"code": code}).json())
    spec = read_model(ExperimentSpec, found.spec)
    experiment = ResolvedExperiment.of(spec)
    shapes = {name: tuple(shape) for name, shape in (found.shapes or {}).items()}
    return Inspection(
        invitation=found,
        spec=spec,
        bytes_per_round=arrays_bytes(experiment, shapes) if shapes else None,
        participants=max(0, _least_contributions(spec) - spec.participants.simulated),
        separate=not experiment.traits.comparable,
        refusal=_refusal(terms, home, spec, found.base_digest),
    )


def _least_contributions(spec: ExperimentSpec) -> int:
    """Returns the number of contributions with which a round may end."""
    members = spec.participants.sample_size(spec.participants.edge + spec.participants.simulated)
    quorum, secure = sampling.quorum(spec, members), spec.secure
    if not secure.masked:
        return quorum
    groups = sampling.groups(spec, 1, sampling.client_names(members))
    return max(quorum, sum(survivors_needed(len(group), secure.least, secure.colluders) for group in groups))


def _refusal(terms: Terms, home: Path, spec: ExperimentSpec, base_digest: str | None) -> str | None:
    try:
        Enforcement(terms, Usage(home / "inspected.json"), "", home).require_experiment(spec, base_digest)
    except FerretError as error:
        return error.detail
    return None
