"""The commands that talk to a server, against a real one with real workers."""

from __future__ import annotations

import json
import re
import time

import pytest
from transformers import AutoModelForCausalLM

from tests.digests import digest_of
from tests.ferret_cli.commands.submitting import cli as cli
from tests.ferret_cli.commands.submitting import document
from tests.ferret_cli.commands.submitting import home as home
from tests.ferret_cli.commands.submitting import toy_file as toy_file


def test_from_submission_to_a_verified_and_exported_model(cli, ferret, toy_file, tmp_path, tiny_model_dir):
    watched = ferret("submit", toy_file, "--priority", "3", "--watch", "--json")
    experiment = document(watched)
    id = experiment["id"]
    assert experiment["priority"] == 3
    assert experiment["state"] == "completed"
    assert experiment["rounds"] == 2
    for number in ("0/2", "1/2", "2/2"):
        assert number in watched.stderr

    assert document(cli("experiment", "list", "--json"))["items"][0]["id"] == id
    assert id in cli("experiment", "list", "--state", "completed").stdout
    edited = document(cli("experiment", "edit", id, "--tag", "Hearts", "--tag", "toys", "--note", "*well*", "--json"))
    assert (edited["tags"], edited["notes"]) == (["Hearts", "toys"], "*well*")
    assert "Hearts, toys" in cli("experiment", "list", "--tag", "hearts", "--sort=-eval_loss").stdout
    assert document(cli("experiment", "edit", id, "--priority", "2", "--json"))["priority"] == 2
    assert cli("experiment", "edit", id, "--priority", "9").returncode == 2
    assert cli("experiment", "edit", id).returncode == 2
    assert "did you mean eval_loss" in cli("experiment", "list", "--sort", "eval_los").stderr
    group = document(cli("experiment", "list", "--group", "--json"))["items"][0]
    assert group["newest"]["id"] == id
    assert re.search(rf"{id} .* {group['states']['completed']} completed", cli("experiment", "list", "--group").stdout)
    failed = document(cli("experiment", "list", "--state", "failed", "--json"))["items"]
    assert id not in [run["id"] for run in failed]
    shown = cli("experiment", "show", id)
    assert shown.returncode == 0
    assert experiment["digest"] in shown.stdout
    assert document(cli("experiment", "show", id, "--json"))["digest"] == experiment["digest"]

    events = [json.loads(line) for line in cli("experiment", "watch", id, "--json").stdout.splitlines()]
    assert events[-1]["type"] == "experiment.completed"
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))

    verified = ferret("experiment", "verify", id, "--json")
    told = document(verified)
    assert told == {"id": id, "rounds": 2, "digest": experiment["digest"], "hashes": told["hashes"], "verified": True}
    assert verified.stderr.count("  verified") == 2
    assert ferret("experiment", "verify", id).stdout.count("  verified") == 2

    receipt = cli("receipt", "show", id, "client-001", "--round", "2")
    (tmp_path / "receipt.json").write_text(receipt.stdout)
    proved = cli("receipt", "verify", "receipt.json", "--hash", told["hashes"][1], "--json")
    assert document(proved)["participant"] == "client-001"
    assert cli("receipt", "show", id, "client-001", "--round", "3").returncode == 3

    exported = document(cli("experiment", "export", id, tmp_path / "model", "--json"))
    assert exported["round"] == 2
    model = AutoModelForCausalLM.from_pretrained(exported["checkpoint"], use_safetensors=True)
    assert digest_of(model, tiny_model_dir) == experiment["digest"]
    card = (tmp_path / "model" / "README.md").read_text()
    assert experiment["digest"] in card
    asked = document(cli("chat", id[:12], "Repeat.", "--input", "sun", "--max-tokens", "5", "--json"))
    assert asked["checkpoint"].endswith(f"chat/{id}-2")
    again = cli("experiment", "export", id, tmp_path / "model")
    assert again.returncode == 2
    assert "not an empty folder" in again.stderr

    simulated = document(ferret("simulate", toy_file, "--json", "--threads", "1"))
    assert simulated["digest"] == experiment["digest"]
    assert [round["number"] for round in simulated["rounds"]] == [0, 1, 2]
    sent = simulated["rounds"][2]["cost"]["numbers_sent"]
    assert re.search(rf"Numbers sent, each +{sent:,.0f} *$", shown.stdout, re.MULTILINE)
    assert experiment["metrics"]["numbers_sent"]["last"] == sent


def test_an_early_end_says_why_and_the_best_model_is_exported(cli, toy_file, tmp_path):
    hopeless = ["--set", "rounds=6", "--set", "stopping.patience=1", "--set", "stopping.min_delta=100"]
    hopeless += ["--set", "checkpoint.keep=1"]
    experiment = document(cli("submit", toy_file, *hopeless, "--watch", "--json"))
    id, best = experiment["id"], experiment["best"]["round"]
    assert (experiment["state"], experiment["round"]) == ("completed", 1)
    reason = experiment["stopped"]["detail"]
    assert reason.startswith("stopped early: eval_loss has not improved by more than 100 for 1 ")
    shown = cli("experiment", "show", id).stdout
    assert reason in shown
    assert f"best round  {best}: Evaluation loss" in " ".join(shown.split()).replace("best round ", "best round  ")
    exported = document(cli("experiment", "export", id, tmp_path / "best", "--best", "--json"))
    assert exported["round"] == best
    assert cli("experiment", "export", id, tmp_path / "both", "--best", "--round", "1").returncode == 2
    simulated = cli("simulate", toy_file, *hopeless, "--json", "--threads", "1")
    assert document(simulated)["digest"] == experiment["digest"]
    assert document(simulated)["stopped"] == reason
    assert reason in simulated.stderr
    extended = cli("experiment", "extend", id, "--rounds", "2")
    assert f"{id} had {reason}; its patience is reset" in extended.stderr.replace("\n", " ")
    assert "1 of 3 rounds" in extended.stderr
    assert cli("experiment", "watch", id).returncode == 0
    assert document(cli("experiment", "show", id, "--json"))["round"] == 2
    rebuilt = cli("experiment", "export", id, tmp_path / "one", "--round", "1", "--json")
    assert "the checkpoint of round 1 is not kept" in rebuilt.stderr
    assert document(rebuilt)["digest"] == experiment["digest"]
    wrong = cli("submit", toy_file, "--set", "stopping.metric=eval_los", "--set", "stopping.patience=1")
    assert wrong.returncode == 2
    assert "did you mean eval_loss?" in wrong.stderr


def test_a_failed_experiment_fails_the_command(cli, ferret, toy_file):
    done = ferret("submit", toy_file, "--set", "model.source=/nowhere", "--watch", "--json")
    assert done.returncode == 1
    experiment = json.loads(done.stdout)
    assert experiment["state"] == "failed"
    assert experiment["error"]["code"] == "model.invalid"
    assert "cost per round" not in cli("experiment", "show", experiment["id"]).stdout
    assert "/nowhere" in done.stderr
    assert cli("experiment", "watch", experiment["id"]).returncode == 1


def test_cancelling(cli, ferret, toy_file):
    waiting = cli("submit", toy_file, "--set", "participants={edge=1}").stdout.strip()
    unsure = ferret("experiment", "cancel", waiting)
    assert unsure.returncode == 1
    assert "for good?" in unsure.stderr
    assert document(cli("experiment", "cancel", waiting, "--yes", "--json"))["state"] == "cancelled"
    assert cli("experiment", "cancel", waiting).returncode == 0
    watched = cli("experiment", "watch", waiting)
    assert watched.returncode == 5
    assert "cancelled" in watched.stderr


def test_pausing_and_resuming(cli, toy_file):
    waiting = cli("submit", toy_file, "--set", "participants={edge=1}").stdout.strip()
    while document(cli("experiment", "show", waiting, "--json"))["state"] == "queued":
        time.sleep(0.2)
    paused = cli("experiment", "pause", waiting, "--json")
    assert document(paused)["state"] == "paused"
    assert f"ferret experiment resume {waiting}" in paused.stderr
    assert re.search(rf"{waiting} .* paused ", cli("experiment", "list").stdout)
    assert document(cli("experiment", "resume", waiting, "--json"))["state"] == "running"
    kept = cli("experiment", "delete", waiting, "--yes")
    assert kept.returncode == 5
    assert "cancel it first" in kept.stderr
    assert cli("experiment", "cancel", waiting, "--yes").returncode == 0
    followed = cli("experiment", "watch", waiting).stderr
    assert followed.index("paused; continue") < followed.index("resumed")


def test_an_experiment_is_found_by_the_beginning_of_its_id_by_name_and_as_the_latest(cli, served, toy_file):
    changes = ["--set", "participants={edge=1}", "--set", "name=one of a kind"]
    first, second = (cli("submit", toy_file, *changes) for _ in range(2))
    id = second.stdout.strip()
    assert f"{served.url}/experiments/{id}" in second.stderr
    for given in (id[:12], "latest"):
        assert document(cli("experiment", "show", given, "--json"))["id"] == id
    several = cli("experiment", "show", "one of a kind")
    assert several.returncode == 3
    assert first.stdout.strip() in several.stderr
    assert id in several.stderr
    for command in ("cancel", "delete"):
        assert cli("experiment", command, id, "--yes").returncode == 0
    shown = document(cli("experiment", "show", "one of a kind", "--json"))
    assert shown["id"] == first.stdout.strip()
    assert cli("experiment", "cancel", "one of a kind", "--yes").returncode == 0
    unknown = cli("experiment", "show", "another kind")
    assert unknown.returncode == 3
    assert "no experiment has this id or name" in unknown.stderr


def test_extending_cloning_archiving_and_deleting(cli, toy_file):
    id = document(cli("submit", toy_file, "--set", "rounds=1", "--watch", "--json"))["id"]
    assert document(cli("experiment", "extend", id, "--rounds", "1", "--json"))["state"] == "running"
    watched = cli("experiment", "watch", id)
    assert watched.returncode == 0
    assert "2/2" in watched.stderr

    changes = ["--set", "name=again", "--set", "algorithm={name='fedavg', local={steps=1}}", "--unset", "seed"]
    cloned = cli("experiment", "clone", id, *changes, "--key", "again", "--json")
    assert "algorithm.name: 'toy' → 'fedavg'" in cloned.stderr
    made = document(cloned)
    assert (made["name"], made["cloned_from"], made["algorithm"]) == ("again", id, "fedavg")
    assert (made["spec"]["seed"], made["spec"]["rounds"]) == (0, 2)
    assert cli("experiment", "clone", id, *changes, "--key", "again").stdout.strip() == made["id"]
    assert cli("experiment", "watch", made["id"]).returncode == 0
    wrong = cli("experiment", "clone", id, "--set", "rounds=0", "--json")
    assert wrong.returncode == 2
    assert json.loads(wrong.stdout)["errors"][0]["field"] == "rounds"

    assert document(cli("experiment", "archive", id, "--json"))["archived_at"] is not None
    assert id not in cli("experiment", "list").stdout
    assert id in cli("experiment", "list", "--archived").stdout
    assert document(cli("experiment", "unarchive", id, "--json"))["archived_at"] is None
    unsure = cli("experiment", "delete", id)
    assert unsure.returncode == 1
    assert "with all its results?" in unsure.stderr
    assert document(cli("experiment", "delete", id, "--yes", "--json")) == {"id": id, "deleted": True}
    assert cli("experiment", "show", id).returncode == 3


@pytest.mark.parametrize(
    "command",
    ["show", "watch", "pause", "resume", "cancel", "clone", "archive", "unarchive", "delete", "verify"],
)
def test_an_unknown_experiment_is_exit_3(cli, command):
    done = cli("experiment", command, "exp_0000000000000000", "--json")
    assert done.returncode == 3
    assert json.loads(done.stdout)["code"] == "experiment.not_found"
    assert "ferret experiment list" in done.stderr


def test_a_wrong_token_is_exit_4(ferret):
    done = ferret("experiment", "list", FERRET_TOKEN="wrong")
    assert done.returncode == 4
    assert "FERRET_TOKEN" in done.stderr


def test_without_a_home_the_command_says_which_variable_is_missing(cli, served, tmp_path):
    done = cli("experiment", "list", FERRET_URL=served.url, FERRET_HOME=str(tmp_path / "elsewhere"))
    assert done.returncode == 4
    assert "set FERRET_HOME" in done.stderr
