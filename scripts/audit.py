"""``make audit``: known vulnerabilities of the packages in the lock files.

Fails on findings. If the advisories cannot be reached, it reports that and passes: a closed network must not stop a
build.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scripts.lock import ROOT, RUNTIME

LIMIT_SECONDS = 300
SKIPPED = "skipped: advisories cannot be reached"
COUNTED = ("moderate", "high", "critical")


class Answer(NamedTuple):
    """A tool's output: its JSON document, if any, and its messages."""

    document: Any
    complaints: str


def main() -> int:
    """Returns the exit code: 1 if anything was found, or if a tool fails for another reason than the network."""
    found = {"Python": python_findings(_pip_audit()), "dashboard": npm_findings(_npm_audit())}
    for name, findings in found.items():
        for line in ["no known vulnerability"] if findings == [] else findings or [SKIPPED]:
            sys.stdout.write(f"{name}: {line}\n")
    return int(any(found.values()))


def python_findings(answer: Answer) -> list[str] | None:
    """Returns one line per vulnerability in pip-audit's output, or None if no index was reached.

    It skips packages that are missing in the index: if it skipped all, there was no index.
    """
    if answer.document is None:
        return _unreached(answer)
    if all("skip_reason" in package for package in answer.document["dependencies"]):
        return None
    return [
        f"{package['name']} {package['version']}: {item['id']}, fixed in {', '.join(item['fix_versions']) or 'none'}"
        for package in answer.document["dependencies"]
        for item in package.get("vulns", [])
    ]


def npm_findings(answer: Answer) -> list[str] | None:
    """Returns npm's findings in the same form, without the severity low."""
    if answer.document is None or "vulnerabilities" not in answer.document:
        return _unreached(answer)
    packages = answer.document["vulnerabilities"].values()
    return [f"{item['name']}: {item['severity']}" for item in packages if item["severity"] in COUNTED]


def _unreached(answer: Answer) -> list[str] | None:
    said = f"{answer.complaints} {json.dumps(answer.document)}".lower()
    network = ("connect", "resolve", "timed out", "timeout", "network", "proxy", "enotfound", "econn", "audit endpoint")
    return None if any(word in said for word in network) else [f"the audit failed: {answer.complaints[-500:]}"]


def _pip_audit() -> Answer:
    options = ["--disable-pip", "--require-hashes", "--progress-spinner", "off", "--timeout", "15", "--format", "json"]
    return _run([sys.executable, "-m", "pip_audit", *options, "--requirement", str(ROOT / RUNTIME)], ROOT)


def _npm_audit() -> Answer:
    npm = shutil.which("npm")
    if npm is None:
        return Answer(None, "no npm on PATH: no network to ask by")
    return _run([npm, "audit", "--json"], ROOT / "web")


def _run(command: Sequence[str], folder: Path) -> Answer:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        return Answer(None, "timed out")
    try:
        return Answer(json.loads(done.stdout), done.stderr)
    except ValueError:
        return Answer(None, done.stderr + done.stdout)


if __name__ == "__main__":
    sys.exit(main())
