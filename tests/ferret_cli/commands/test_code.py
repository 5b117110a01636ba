"""Enrolment codes by command: a code that was made is printed, whatever comes after it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from ferret_cli.commands import code
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.participants import Enrolment


@pytest.fixture
def create(monkeypatch: pytest.MonkeyPatch, ferret_in_process):
    """``create(made, end)``: runs ``ferret code create --json``; the server raises ``end`` after ``made`` codes."""

    def run(made: int, end: BaseException):
        codes = [
            Enrolment(
                id=f"enr_{number:016x}",
                group=None,
                approval=False,
                code=f"0000.{number}",
                expires_at=datetime(2026, 1, 1, tzinfo=UTC),
                command="ferret join …",
            )
            for number in range(made)
        ]

        def create_code(*options: object, **named: object) -> Enrolment:
            if not codes:
                raise end
            return codes.pop(0)

        service = SimpleNamespace(experiment=lambda id: SimpleNamespace(create_code=create_code))
        monkeypatch.setattr(code, "connect", lambda url, insecure_http: service)
        return ferret_in_process("code", "create", "latest", "--count", "5", "--json")

    return run


@pytest.mark.parametrize(
    ("end", "status"), [(KeyboardInterrupt(), 130), (FerretError("auth.forbidden", "not yours"), 4)]
)
def test_the_codes_that_were_made_before_the_end_are_the_only_document(create, end: BaseException, status: int) -> None:
    done = create(2, end)
    assert done.returncode == status
    assert [item["code"] for item in json.loads(done.stdout)["items"]] == ["0000.0", "0000.1"]


def test_without_a_code_the_error_is_the_only_document(create) -> None:
    done = create(0, FerretError("auth.forbidden", "not yours"))
    assert (done.returncode, json.loads(done.stdout)["code"]) == (4, "auth.forbidden")
