"""Participants and researchers also use Windows, which lacks POSIX's own modules, and constants that POSIX has."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import ferret_sdk

POSIX_ONLY = ("fcntl", "grp", "pwd", "resource", "termios")
ALL = {module.name for module in pkgutil.walk_packages(ferret_sdk.__path__, "ferret_sdk.")}
SDK = ALL - {"ferret_sdk.participant.transformers_trainer"}
"""Without the Trainer's adapter: what transformers imports for it on Windows is not what it imports here."""
POSIX_ONLY_IN_OS = ("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_DIRECTORY", "O_NOFOLLOW", "getuid", "geteuid")
"""Of what a participant might use; some of it Windows has from Python 3.13 on."""
PARTICIPANT = [
    "ferret_core.client.local_round",
    "ferret_core.replica.replica",
    "ferret_core.simulate",
    "ferret_cli.join_display",
]


@pytest.mark.heavy
def test_the_sdk_and_all_that_a_participant_runs_are_imported_without_posix() -> None:
    program = f"""
import importlib, sys
sys.modules.update(dict.fromkeys({POSIX_ONLY}))
for name in {["ferret_sdk", *SDK, *PARTICIPANT, "ferret_cli.main"]}:
    importlib.import_module(name)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert {"ferret_sdk.service.service", "ferret_sdk.participant.participant"} <= SDK


@pytest.mark.heavy
def test_what_a_participant_keeps_is_read_and_written_without_posix(tmp_path: Path) -> None:
    """Its data, its place, its upload and its locks, as far as a system without them can be played on this one."""
    (tmp_path / "data.jsonl").write_bytes(b'{"instruction": "a", "output": "b"}\r\n')
    program = f"""
import json, os, sys, warnings
sys.modules.update(dict.fromkeys({POSIX_ONLY}))
warnings.simplefilter("ignore")
import filelock, tempfile, pydantic, numpy
for name in {POSIX_ONLY_IN_OS}:
    delattr(os, name)
from pathlib import Path
from ferret_cli.join_display import begin
from ferret_sdk.participant import membership
from ferret_sdk.participant.local_examples import read_examples
from ferret_sdk.participant.lock import in_turn, sole
from ferret_sdk.participant.membership import Membership
from ferret_sdk.participant.spool import Spool, Upload
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
platform, sys.platform = sys.platform, "win32"
home = Path({str(tmp_path)!r})
begin()
(example,) = read_examples(home / "data.jsonl")
names = dict(experiment="exp_0123456789abcdef", participant="par_0123456789abcdef", name="clinic", token="t")
names |= dict(display_name="clinic", key="1" * 64)
place = membership.save(home, Membership(url="http://127.0.0.1:1", code="0" * 64, **names))
spool = Spool(home / "spool")
spool.keep(Upload("asg_1", 1, 1, "key", 1.0, None, digest_bytes(b"blob"), 4, "5" * 128), (b"blob",))
sys.platform = platform  # filelock has read it already
refused = ""
with sole(home / "place.lock", "clinic"), in_turn(home / "base.lock", lambda: None):
    try:
        with sole(home / "place.lock", "clinic"):
            pass
    except FerretError as error:
        refused = error.code
print(json.dumps([example.output, place.exists(), spool.read(0, spool.waiting().size).decode(), refused]))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == ["b", True, "blob", "participant.in_use"]
