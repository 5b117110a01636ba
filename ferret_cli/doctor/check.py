"""The outcome of one look at the machine."""

from __future__ import annotations

from typing import NamedTuple


class Check(NamedTuple):
    """``ok`` is None where something optional is missing; ``fix`` is the command that adds it."""

    name: str
    ok: bool | None
    detail: str
    fix: str | None = None

    @property
    def mark(self) -> str:
        return {True: "ok", False: "missing", None: "–"}[self.ok]
