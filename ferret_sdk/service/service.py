"""The researcher's and the operator's view of a server."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from ferret_core.protocol.audit import AuditEntry, Head
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources import system
from ferret_core.protocol.resources.drafts import CatalogEntry, CatalogEntryList
from ferret_core.protocol.resources.experiments import Experiment, ExperimentGroup, ListedExperiment
from ferret_core.protocol.resources.system import Info, System
from ferret_core.protocol.resources.users import SignInLink
from ferret_core.protocol.spec import ExperimentSpec
from ferret_sdk.http.transport import Transport, list_items, read_model
from ferret_sdk.service import notebook
from ferret_sdk.service.projects import Alerts, Projects
from ferret_sdk.service.run import Run
from ferret_sdk.service.server_address import ClientSettings, resolve
from ferret_sdk.service.users import Users

PATH = "/experiments"
LATEST = "latest"
_ID = re.compile(r"exp_[0-9a-f]{16}")
SHOWN = 20
"""Rows in a notebook."""
Kind = Literal["algorithms", "datasets", "models"]


class ExperimentFilters(TypedDict, total=False):
    """Filters and order. The default is all that are not archived, newest first."""

    state: Sequence[str]
    """Allowed states."""
    algorithm: str | None
    dataset: str | None
    name: str | None
    """A part of the name."""
    archived: bool
    """Only archived ones."""
    project: str | None
    tags: Sequence[str]
    """Required tags."""
    created_after: datetime | None
    created_before: datetime | None
    where: Sequence[str]
    """Bounds of columns of numbers, such as ``eval_loss<2``."""
    sort: str | None
    """A column such as ``name``, ``rounds``, ``bytes_up``, or a metric; a leading minus means descending."""


def parameters(wanted: ExperimentFilters) -> dict[str, Any]:
    """Returns the list's query parameters."""
    query: dict[str, Any] = {**wanted, "archived": wanted.get("archived") or None}
    query["tag"] = list(query.pop("tags", ()))
    for name in ("created_after", "created_before"):
        query[name] = query[name].isoformat() if query.get(name) else None
    return query


class Experiments:
    """Experiments, fetched page by page on demand, and again for each loop."""

    def __init__(self, transport: Transport, query: dict[str, Any]) -> None:
        self._transport, self._query = transport, query

    def __iter__(self) -> Iterator[ListedExperiment]:
        return list_items(self._transport, PATH, ListedExperiment, **self._query)

    def __repr__(self) -> str:
        asked = ", ".join(f"{name}={value!r}" for name, value in self._query.items() if value not in (None, []))
        return f"Experiments({asked})"

    def _repr_html_(self) -> str:
        found = list(islice(self, SHOWN + 1))
        return notebook.of_list(found[:SHOWN], self._transport.url, more=len(found) > SHOWN)


class Service:
    """A Ferret server::

        run = Service("http://127.0.0.1:8765", token).submit(ExperimentSpec.from_toml("mine.toml")).wait()
        run.export("tuned")

    Without arguments: ``FERRET_URL`` and ``FERRET_TOKEN`` (or ``FERRET_TOKEN_FILE``), otherwise the server that
    ``ferret serve`` runs in this machine's ``FERRET_HOME``. All methods raise :class:`FerretError` with the server's
    code, and ``server.unreachable`` if it does not answer. Plain http to another machine needs ``insecure_http`` or
    ``FERRET_INSECURE_HTTP=1``. ``ca`` or ``FERRET_CA`` is the file of the certificate authorities to trust instead of
    the usual ones.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        insecure_http: bool = False,
        ca: str | Path | None = None,
    ) -> None:
        address, settings = resolve(url, token), ClientSettings()
        self.url = address.url
        self.transport = Transport(
            address.url,
            address.token,
            insecure_http=insecure_http or settings.insecure_http,
            ca=Path(ca) if ca else settings.ca,
            certificate=address.certificate,
        )

    def info(self) -> Info:
        """Returns the server's name, version, backends and format versions."""
        return read_model(Info, self.transport.get("/info"))

    def system(self) -> System:
        """Status of components, queues, workers and disk, for administrators."""
        return read_model(System, self.transport.get("/system"))

    def submit(
        self,
        spec: ExperimentSpec | dict[str, Any],
        key: str | None = None,
        *,
        project: str | None = None,
        priority: int | None = None,
    ) -> Run:
        """Queues an experiment of ``project`` (default: the only one that the caller sees).

        ``spec`` is the content of a TOML file (:meth:`ExperimentSpec.from_toml`), or the same as a dict; its paths are
        the server's. ``priority`` (1 to 8) is the number of trainings per training of an experiment with priority 1.

        Repeating the call with the same ``key`` creates no second experiment. Without a key, a random one protects
        against a request that the network repeats.
        """
        body = spec.model_dump(mode="json") if isinstance(spec, ExperimentSpec) else spec
        headers = {"Idempotency-Key": key or secrets.token_hex(16)}
        query = {"project": project, "priority": priority}
        answer = self.transport.post("/experiments", body, headers=headers, query=query)
        return Run(self.transport, read_model(Experiment, answer.json()))

    def sign_in_link(self) -> SignInLink:
        """Creates an address that signs one browser in, once and within an hour."""
        return read_model(SignInLink, self.transport.post("/session/link").json())

    def audit(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        subject: str | None = None,
        oldest_first: bool = False,
    ) -> Iterator[AuditEntry]:
        """Yields audit entries, newest first; ``ferret_core.protocol.audit.verify`` checks them, oldest first."""
        order = "oldest" if oldest_first else "newest"
        wanted = {"actor": actor, "action": action, "subject": subject, "order": order, "limit": 200}
        for said in list_items(self.transport, "/audit", system.AuditEntry, **wanted):
            yield AuditEntry(*(getattr(said, name) for name in AuditEntry._fields))

    def audit_head(self) -> Head:
        """Returns the end of the audit log."""
        said = read_model(system.AuditHead, self.transport.get("/audit/head"))
        return Head(said.number, said.hash)

    @property
    def people(self) -> Users:
        """Users and tokens."""
        return Users(self.transport)

    @property
    def alerts(self) -> Alerts:
        """Alerts on a project's experiments."""
        return Alerts(self.transport)

    @property
    def projects(self) -> Projects:
        """Projects, members, and the models and data that experiments may use."""
        return Projects(self.transport)

    def experiment(self, id: str) -> Run:
        """Returns the experiment with this id, beginning of an id, or name; ``latest`` is the newest one that is not
        archived.

        Raises ``experiment.not_found``, which names the ids where several match.
        """
        full = id if _ID.fullmatch(id) else self._id_of(id)
        return Run(self.transport, read_model(Experiment, self.transport.get(f"/experiments/{full}")))

    def _id_of(self, given: str) -> str:
        if given == LATEST:
            found = list(islice(self.experiments(), 1))
        else:
            listed = chain(self.experiments(), self.experiments(archived=True))
            found = [each for each in listed if each.id.startswith(given) or each.name == given]
        if len(found) == 1:
            return found[0].id
        ids = ", ".join(each.id for each in found)
        message = f"could be any of {ids}: give more of the id" if found else "no experiment has this id or name"
        raise FerretError.of_field("experiment.not_found", "id", given, message)

    def experiments(self, **wanted: Unpack[ExperimentFilters]) -> Experiments:
        """Lists experiments, newest first, fetched page by page on demand; only archived ones, or all others.

        :meth:`experiment` gives access to one.
        """
        return Experiments(self.transport, parameters(wanted))

    def experiment_groups(self, **wanted: Unpack[ExperimentFilters]) -> Iterator[ExperimentGroup]:
        """Lists the same experiments grouped if they differ only in name and seed, with means and deviations.

        ``sort`` uses a group's mean of a metric, its sum of bytes, its last time.
        """
        return list_items(self.transport, "/experiments/groups", ExperimentGroup, **parameters(wanted))

    def catalog(self, kind: Kind) -> list[CatalogEntry]:
        """Lists this server's implementations of ``kind``, each with the JSON Schema of its options."""
        return read_model(CatalogEntryList, self.transport.get(f"/catalog/{kind}")).items
