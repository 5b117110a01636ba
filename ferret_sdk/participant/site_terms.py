"""A site's terms, ``site.toml``: the limits of its participants, whatever a server requests.

::

    [allow]
    algorithms = ["ferret"]
    participants = 5
    examples = 32
    whole_blocks = false
    quiet_hours = ["mon-fri 07:00-19:00"]

    [[allow.models]]
    source = "meta-llama/Llama-3.2-1B"
    digest = "5f0c…"

    [limits]
    steps = 50
    sequences = 2000
    share = 0.1
    hours_per_day = 6
    memory_gb = 32
    bytes_per_round = 20000

    [privacy]
    clip = 0.5
    noise_multiplier = 2.0
    epsilon = 8.0
    delta = 1e-6

    [secure]
    require = true
    peers = ["5f0c…"]
    peers_required = 1
    least = 5

:mod:`ferret_sdk.participant.terms_enforcement` enforces them.
"""

from __future__ import annotations

import re
import stat
import sys
import tomllib
from collections.abc import Sequence
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

from pydantic import BeforeValidator, Field, PlainSerializer, ValidationError, model_validator

from ferret_core.protocol.errors import FerretError, field_errors
from ferret_core.protocol.ids import Digest, PublicKey
from ferret_core.protocol.limits import (
    MAX_BYTES,
    MAX_EXAMPLES,
    MAX_REAL,
    MAX_SEQUENCES,
    MAX_STEPS,
    Label,
    Revision,
    Source,
)
from ferret_core.protocol.spec import StrictModel
from ferret_core.secure.roster import LEAST_MEMBERS, MOST_MEMBERS

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FORM = re.compile(rf"(?:({'|'.join(DAYS)})(?:-({'|'.join(DAYS)}))? )?(\d\d:\d\d)-(\d\d:\d\d)", re.IGNORECASE)
_WEEK = 7
FILE = "site.toml"
Hours = Annotated[float, Field(gt=0, le=100_000)]


class QuietWindow(NamedTuple):
    """A window from ``begin`` to ``end`` on each of ``days`` (0: Monday); into the next day if ``end`` is not later."""

    days: frozenset[int]
    begin: time
    end: time

    def __str__(self) -> str:
        named = " ".join(DAYS[day] for day in sorted(self.days) if len(self.days) < _WEEK)
        return f"{named} {self.begin:%H:%M}-{self.end:%H:%M}".strip()

    def end_after(self, now: datetime) -> datetime | None:
        """Returns the end of the window that contains ``now``, or None outside the window."""
        for day in (now.date(), now.date() - timedelta(days=1)):
            if day.weekday() in self.days:
                begin = datetime.combine(day, self.begin)
                end = datetime.combine(day + timedelta(days=self.end <= self.begin), self.end)
                if begin <= now < end:
                    return end
        return None


def local_now() -> datetime:
    """Returns the local time of this machine. Only quiet hours, hours per day and the site's log use it."""
    return datetime.now()


def end_of_quiet_hours(windows: Sequence[QuietWindow], now: datetime) -> datetime | None:
    """Returns the end of the quiet hours that contain ``now``, a local time, or None outside quiet hours."""
    at = now
    while at - now < timedelta(days=_WEEK):  # windows may be adjacent, round the whole week
        later = [end for window in windows if (end := window.end_after(at)) is not None]
        if not later:
            break
        at = max(later)
    return None if at == now else at


def _parse(value: Any) -> Any:
    found = _FORM.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError("is not a time such as 07:00-19:00 or mon-fri 07:00-19:00")
    first, last, begin, end = found.groups()
    return QuietWindow(_days(first, last), time.fromisoformat(begin), time.fromisoformat(end))


def _days(first: str | None, last: str | None) -> frozenset[int]:
    if first is None:
        return frozenset(range(_WEEK))
    begin = DAYS.index(first.lower())
    end = DAYS.index((last or first).lower())
    return frozenset((begin + step) % _WEEK for step in range((end - begin) % _WEEK + 1))


QuietHours = Annotated[QuietWindow, BeforeValidator(_parse), PlainSerializer(str)]


class AllowedModel(StrictModel):
    """A base model, as an experiment names it.

    ``digest`` is computed here from all its files, because a server can give any model any name. A model's built-in
    chat template is used only if its digest is allowed.
    """

    source: Source = Field(description="Folder or hub name in the experiment's specification")
    revision: Revision | None = Field(default=None, description="Commit or tag; any if unset")
    digest: Digest | None = Field(default=None, description="Digest of the base model; any if unset")


class Allow(StrictModel):
    """The experiments that this site takes part in, and the times. Unset fields do not restrict."""

    algorithms: list[Label] | None = Field(default=None, max_length=100)
    models: list[AllowedModel] | None = Field(default=None, max_length=1000)
    participants: int = Field(
        default=1, ge=1, le=100_000, description="Minimum real participants in a round, including this one"
    )
    examples: int = Field(default=1, ge=1, le=MAX_EXAMPLES, description="Minimum distinct examples per contribution")
    whole_blocks: bool = Field(
        default=True, description="Allows contributions with whole blocks of the model (K_l = d_l, or no blocks)"
    )
    quiet_hours: list[QuietHours] = Field(
        default=[],
        max_length=100,
        description="Times without training and sending, by this machine's clock: 07:00-19:00, mon-fri 07:00-19:00",
    )


class Limits(StrictModel):
    """Limits of a participant of this site per experiment. Unset fields do not limit."""

    steps: int | None = Field(default=None, ge=1, le=MAX_STEPS, description="Local steps per round")
    sequences: int | None = Field(
        default=None,
        ge=1,
        le=MAX_SEQUENCES**2,
        description="Sequences per round: steps × batch × accumulation × perturbations per step",
    )
    share: float | None = Field(default=None, gt=0, le=1, description="Sent coordinates per weight of a block")
    hours_per_day: Hours | None = Field(default=None, description="Hours of training per day of this machine's clock")
    hours: Hours | None = Field(default=None, description="Total hours of training")
    memory_gb: float | None = Field(
        default=None, gt=0, le=1e6, description="Memory during training, in units of 10⁹ bytes"
    )
    bytes_per_round: int | None = Field(default=None, ge=1, le=MAX_BYTES, description="Bytes per contribution")
    bytes: int | None = Field(default=None, ge=1, le=MAX_BYTES, description="Total bytes of all contributions")


class Privacy(StrictModel):
    """Clipping and Gaussian noise of contributions, and the budget: differential privacy of all of the site's data,
    over all its experiments together. :mod:`ferret_sdk.participant.privacy_budget` derives ε.
    """

    clip: float = Field(
        gt=0, le=MAX_REAL, description="Maximum L2 norm of a contribution's vector; a longer one is clipped"
    )
    noise_multiplier: float = Field(
        gt=0, le=1e6, description="Standard deviation of the noise on each entry, in units of clip"
    )
    epsilon: float = Field(gt=0, le=1e4, description="Budget: a contribution that would exceed it is not made")
    delta: float = Field(gt=0, lt=1, description="δ of the budget; well below 1 / number of people")


class Secure(StrictModel):
    """This site's demands on secure sums. Peers are other sites, by the identity that `ferret site key` prints there.

    Without peers the server must be trusted to list real participants.
    """

    require: bool = Field(default=False, description="Takes part in secure sums only")
    peers: list[PublicKey] = Field(default=[], max_length=1000, description="Identities of other sites")
    peers_required: int = Field(
        default=0, ge=0, le=MOST_MEMBERS, description="Minimum peers in a group, and among its survivors"
    )
    least: int = Field(
        default=LEAST_MEMBERS, ge=LEAST_MEMBERS, le=MOST_MEMBERS, description="Minimum participants in a sum"
    )

    @model_validator(mode="after")
    def _enough_peers(self) -> Self:
        if self.peers_required > len({*self.peers}):
            raise ValueError(f"peers_required = {self.peers_required} is more than the {len({*self.peers})} peers")
        return self

    def require_others(self, own: str) -> None:
        """Raises ``terms.invalid`` if the site's ``own`` identity is among the peers."""
        if own in self.peers:
            message = "is this site's own identity, and a site is no peer of itself: remove it"
            raise FerretError.of_field("terms.invalid", "secure.peers", own, message)


class Terms(StrictModel):
    """The whole file. Without a file nothing is restricted."""

    allow: Allow = Allow()
    limits: Limits = Limits()
    privacy: Privacy | None = None
    secure: Secure = Secure()


def read(path: str | Path) -> Terms:
    """Reads the terms in ``path``. ``terms.invalid`` names the file and the error in it."""
    path = Path(path)
    try:
        if sys.platform != "win32" and path.stat().st_mode & stat.S_IWOTH:
            message = "can be changed by everybody on this machine: chmod o-w it"
            raise FerretError.of_field("terms.invalid", "terms", str(path), message)
        return Terms.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise FerretError.of_field("terms.invalid", "terms", str(path), f"cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise FerretError.of_fields("terms.invalid", field_errors(error, [path.name], Terms)) from error
    except ValueError as error:  # invalid TOML or UTF-8
        raise FerretError.of_field("terms.invalid", "terms", str(path), f"is not TOML: {error}") from error


def of_home(home: Path) -> Terms:
    """Returns the terms in ``home``, which apply to all its participants; without a file they restrict nothing."""
    path = home / FILE
    return read(path) if path.exists() else Terms()
