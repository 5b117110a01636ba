"""The dependency audit, with the answers of pip-audit and npm as they give them."""

from __future__ import annotations

from typing import Any

import pytest

from scripts import audit
from scripts.audit import Answer, npm_findings, python_findings

CLEAN: dict[str, Any] = {"name": "jinja2", "version": "3.1.6", "vulns": []}
VULNERABLE = CLEAN | {"version": "2.4.1", "vulns": [{"id": "PYSEC-2014-8", "fix_versions": ["2.7.2"]}]}
SKIPPED = {"name": "torch", "skip_reason": "Dependency not found on PyPI"}
OFFLINE = [
    Answer(None, "ERROR:pip_audit._cli:HTTPSConnectionPool(host='pypi.org'): Failed to resolve 'pypi.org'"),
    Answer({"message": "request failed, reason: getaddrinfo ENOTFOUND registry.npmjs.org"}, ""),
    Answer({"message": "405 Method Not Allowed"}, "npm error audit endpoint returned an error"),
    Answer({"dependencies": [SKIPPED]}, ""),
]


def test_a_vulnerability_is_found_and_named() -> None:
    assert python_findings(Answer({"dependencies": [CLEAN, VULNERABLE, SKIPPED]}, "")) == [
        "jinja2 2.4.1: PYSEC-2014-8, fixed in 2.7.2"
    ]
    found = {"a": {"name": "vite", "severity": "high"}, "b": {"name": "x", "severity": "low"}}
    assert npm_findings(Answer({"vulnerabilities": found}, "")) == ["vite: high"]


@pytest.mark.parametrize("answer", OFFLINE)
def test_without_advisories_it_says_so_and_passes(
    answer: Answer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    npm = answer.document is None or "message" in answer.document
    monkeypatch.setattr(audit, "_pip_audit", lambda: OFFLINE[0] if npm else answer)
    monkeypatch.setattr(audit, "_npm_audit", lambda: answer if npm else OFFLINE[1])
    assert audit.main() == 0
    assert capsys.readouterr().out.count(audit.SKIPPED) == 2


def test_a_finding_fails_and_so_does_a_tool_that_breaks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(audit, "_npm_audit", lambda: OFFLINE[1])
    for answer in (Answer({"dependencies": [VULNERABLE]}, ""), Answer(None, "Traceback: KeyError")):
        monkeypatch.setattr(audit, "_pip_audit", lambda answer=answer: answer)
        assert audit.main() == 1
    assert "PYSEC-2014-8" in capsys.readouterr().out
