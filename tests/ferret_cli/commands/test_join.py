"""``ferret join`` as an administrator sees it: its dry run, a site's own terms, and consent."""

from __future__ import annotations

import json
import math
import time

from ferret_sdk.service.run import Run


def test_a_dry_run_prints_every_part_and_sends_none(served, toy_spec, toy_data, tmp_path, ferret_in_process) -> None:
    run: Run = served.service.submit(toy_spec(participants={"edge": 1}))
    code = run.create_code().code
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


def test_a_site_sees_the_experiment_of_its_code_and_keeps_the_code(
    served, toy_spec, tmp_path, ferret_in_process
) -> None:
    run: Run = served.service.submit(toy_spec("fedavg", participants={"edge": 3}, round={"quorum": 0.6}))
    code = run.create_code().code
    while run.refresh().experiment.shapes is None:
        time.sleep(0.1)
    own = tmp_path / "site.toml"
    own.write_text("[allow]\nalgorithms = ['ferret']\n")
    join = ("join", served.service.url, "--inspect", "--terms", own)
    shown = ferret_in_process(*join, FERRET_CODE=code)
    assert shown.returncode == 0, shown.stderr
    found = json.loads(ferret_in_process(*join, "--json", FERRET_CODE=code).stdout)
    assert found["invitation"]["base_digest"] == run.experiment.base_digest
    assert found["spec"]["round"]["quorum"] == 0.6
    assert found["participants"] == 2, "three times the quorum, rounded up"
    assert found["bytes_per_round"] == 4 * sum(math.prod(shape) for shape in run.experiment.shapes.values())
    assert "this site allows ferret" in found["refusal"]
    for words in (
        run.id,
        "fedavg",
        "real participants",
        "messages",
        "this site allows ferret",
        "read the mean of a round",
    ):
        assert words in shown.stdout
    assert [code.used_at for code in run.codes()] == [None]
    assert list(run.participants()) == []
    refused = ferret_in_process(*join, FERRET_CODE="0000." + "x" * 43)
    assert (refused.returncode, "spent" in refused.stderr) == (4, False)
    run.cancel()


def test_terms_that_cannot_be_kept_spend_no_code(served, toy_spec, toy_data, tmp_path, ferret_in_process) -> None:
    run = served.service.submit(toy_spec(participants={"edge": 1}))
    code = run.create_code().code
    own = tmp_path / "site.toml"
    join = ("join", "--yes", served.service.url, "--data", toy_data[0], "--name", "clinic", "--terms", own)
    for text, said in ((None, "cannot be read"), ("[limits]\nstep = 3\n", "did you mean steps?")):
        if text is not None:
            own.write_text(text)
        refused = ferret_in_process(*join, FERRET_CODE=code)
        assert refused.returncode == 2
        assert said in refused.stderr
        assert "docs/sites/site-terms.md" in refused.stderr

    own.write_text("[allow]\nalgorithms = ['fedavg']\n")
    refused = ferret_in_process(*join, "--json", FERRET_CODE=code)
    assert refused.returncode == 4
    assert json.loads(refused.stdout.splitlines()[-1])["code"] == "terms.refused"
    assert "algorithm.name = 'toy': this site allows fedavg" in refused.stderr
    assert "change site.toml" in refused.stderr
    status = json.loads(ferret_in_process("site", "status", "--terms", own, "--json").stdout)
    assert status["terms"]["allow"]["algorithms"] == ["fedavg"]
    assert [member["name"] for member in status["memberships"]] == ["clinic"]
    run.cancel()


def test_what_may_reveal_examples_needs_consent(served, toy_spec, toy_data, tmp_path, ferret_in_process) -> None:
    run = served.service.submit(toy_spec("fedavg", participants={"edge": 1}, rounds=1))
    code = run.create_code().code
    join = ("join", served.service.url, "--data", toy_data[0], "--name", "clinic")
    refused = ferret_in_process(*join, FERRET_CODE=code, FERRET_HOME=str(tmp_path / "site"))
    assert refused.returncode == 2
    assert "The server and the people who run it read each contribution on its own." in refused.stderr
    assert "The other participants of the experiment read the mean of a round's contributions." in refused.stderr
    assert "nothing was trained: a contribution may reveal single examples" in refused.stderr
    assert "run the same command with --yes" in refused.stderr
    done = ferret_in_process(*join, "--yes", FERRET_CODE=code, FERRET_HOME=str(tmp_path / "site"))
    assert done.returncode == 0, done.stderr
    assert run.refresh().state == "completed"
