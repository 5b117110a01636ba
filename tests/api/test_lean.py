"""An API process that has submitted, shown the catalog and taken a contribution holds no torch and little memory."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import pytest

from ferret_core import discovery
from tests.api.conftest import ASSIGNMENT, Member, document, upload_headers
from tests.security.api_process import ApiProcess

HEAVY = {"torch", "transformers", "numba", "peft", "triton", "matplotlib", "alembic", "ferret_worker"}
MOST_MEGABYTES = 150
# What ``python -m ferret_api`` does, and on SIGUSR1 a list of all that it has imported.
PROGRAM = """
import pathlib, runpy, signal, sys
listed = pathlib.Path(sys.argv.pop(1))
def write(*_):
    draft = listed.with_suffix(".draft")
    draft.write_text("\\n".join(sys.modules))
    draft.rename(listed)
signal.signal(signal.SIGUSR1, write)
runpy.run_module("ferret_api", run_name="__main__", alter_sys=True)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_submissions_the_catalog_and_uploads_need_neither_torch_nor_much_memory(site: Any, tmp_path: Path) -> None:
    member: Member = site.member()
    listed = tmp_path / "modules"
    with ApiProcess(site.context.settings.home, "-c", PROGRAM, str(listed), FERRET_DATA_ROOTS="/") as api:
        for name in discovery.names("ferret_core.algorithms"):
            api.admin.post("/api/v1/experiments", json=document(algorithm={"name": name})).raise_for_status()
        for kind in ("algorithms", "datasets", "partitions", "models"):
            for entry in api.admin.get(f"/api/v1/catalog/{kind}").raise_for_status().json()["items"]:
                api.admin.get(f"/api/v1/catalog/{kind}/{entry['name']}").raise_for_status()
        token = {"Authorization": member.client.headers["Authorization"]}
        api.admin.get(ASSIGNMENT, headers=token).raise_for_status()
        headers = upload_headers(member.lease) | token
        api.admin.put(f"{member.address}/contribution", content=member.blob(), headers=headers).raise_for_status()
        held = api.peak_megabytes
        api.process.send_signal(signal.SIGUSR1)
        while not listed.exists():
            time.sleep(0.05)
    assert HEAVY & {name.partition(".")[0] for name in listed.read_text().splitlines()} == set()
    assert held <= MOST_MEGABYTES
