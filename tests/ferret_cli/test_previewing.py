"""``ferret join --dry-run`` as an administrator sees it."""

from __future__ import annotations

import json
import time

from ferret_sdk.service.run import Run


def test_a_dry_run_prints_every_part_and_sends_none(served, toy_spec, toy_data, tmp_path, ferret_in_process) -> None:
    run: Run = served.service.submit(toy_spec(participants={"edge": 1}))
    code = served.service.enrolment(run.id).code
    while run.refresh().experiment.digest is None:
        time.sleep(0.1)
    command = ("join", served.service.url, "--data", toy_data[0], "--name", "clinic", "--dry-run")
    shown = ferret_in_process(*command, FERRET_CODE=code)
    assert shown.returncode == 0, shown.stderr
    rows = {tuple(line.split()[:2]) for line in shown.stdout.splitlines()}
    assert rows >= {("header", "ferret-fence"), ("metadata", "examples"), ("array", "mean")}
    assert "nothing of it was sent" in shown.stderr

    document = json.loads(ferret_in_process(*command, "--json", FERRET_CODE=code).stdout)
    assert document["digest"] in shown.stderr
    assert sum(part["size"] for part in document["parts"] if part["place"] != "header") == document["size"]
    assert all(found.state == "pending" for found in run.contributions())
    run.cancel()
