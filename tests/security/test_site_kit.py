"""A site against a hostile server and a hostile researcher: what it sends does not depend on its records.

Each scenario runs twice, on different records. Every byte that leaves must be the same in both.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ferret_cli.commands.site import TERMS
from ferret_core.protocol.errors import FerretError
from ferret_core.replica.replica import Replica
from ferret_sdk import Participant
from ferret_sdk.participant import membership, site_terms
from ferret_sdk.participant.privacy_budget import Budget, ReleaseCount
from tests.security.hostile import ASSIGNMENT, HostileServer, Reply, json_reply
from tests.tiers import slow

pytestmark = [pytest.mark.timeout(120)]

RECORDS = ("Patient Hannah Vogel, HIV positive since 2019.", "Patient Jonas Brandt, diagnosed with asthma in 2021.")
EXAMPLES = 40
QUOTING = "{{ raise_exception(messages[0]['content']) }}"
LOOPING = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
HUGE = "{{ 'a' * 3000000000 }}"
CHOOSING = "{% if 'Hannah' in messages[0]['content'] %}{{ raise_exception('') }}{% endif %}{{ messages[0]['content'] }}"
BUDGET = {"clip": 0.5, "noise_multiplier": 8.0, "epsilon": 4.0, "delta": 1e-6}
FAILURE = f"{ASSIGNMENT}/failure"
KEY = "11" * 32
CODE = "a-code"


@pytest.fixture(autouse=True)
def same_chances(impatient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and random names are the same in every run."""
    monkeypatch.setattr(membership, "new_key", lambda: KEY)
    monkeypatch.setattr(secrets, "token_hex", lambda count=32: "0" * 2 * count)


@pytest.fixture(scope="session")
def base_spec(tiny_model_dir: Path, toy_spec: Callable[..., Any]) -> tuple[dict[str, Any], str]:
    """The experiment that the server is about, and the digest of its base model."""
    spec = toy_spec(participants={"edge": 4}, round={"quorum": 1.0}, model={"source": "/nowhere/on/this/machine"})
    return spec.model_dump(mode="json"), Replica.load(spec, tiny_model_dir).digest


Change = Callable[[HostileServer], None]


@pytest.fixture
def attack(base_spec: tuple[dict[str, Any], str], tiny_model_dir: Path, tmp_path: Path) -> Any:
    """``attack(change, site_toml, record)`` takes part under these terms until it fails: the server and the error."""
    spec, digest = base_spec
    runs = iter(range(100))

    def run(change: Change, site_toml: str | None, record: str) -> tuple[HostileServer, FerretError, Path]:
        home = tmp_path / f"home-{next(runs)}"
        home.mkdir()
        if site_toml is not None:
            (home / "site.toml").write_text(site_toml)
        rows = [{"instruction": record, "input": str(number), "output": record} for number in range(EXAMPLES)]
        with HostileServer(tiny_model_dir, spec, digest).running() as server:
            server.task["population"] = 4
            server.replies[FAILURE] = end_with(server)
            change(server)
            with pytest.raises(FerretError) as raised:
                Participant.enrol(server.url, CODE, "clinic", home).run(rows, give_up_after=0)
        return server, raised.value, home

    return run


@pytest.fixture
def usual(base_spec: tuple[dict[str, Any], str]) -> str:
    """``ferret site init``'s file, with the one model in it that the site agreed to."""
    listed = f'[[allow.models]]\nsource = "/nowhere/on/this/machine"\ndigest = "{base_spec[1]}"\n\n[limits]'
    lines = [line for line in TERMS.splitlines() if not line.startswith("models = ")]
    return "\n".join(lines).replace("[limits]", listed)


def chat(template: str) -> Change:
    """The model's own chat template is this one, and the experiment uses it."""

    def change(server: HostileServer) -> None:
        server.replace("tokenizer_config.json", lambda config: config | {"chat_template": template})
        server.experiment["spec"]["prompt"]["template"] = "chat"

    return change


def silent(server: HostileServer) -> None:
    """A tokenizer that gives no token for any text."""

    def nothing(document: dict[str, Any]) -> dict[str, Any]:
        erase = {"type": "Replace", "pattern": {"Regex": "."}, "content": ""}
        return document | {"normalizer": erase, "post_processor": None}

    server.replace("tokenizer.json", nothing)


def other_activation(server: HostileServer) -> None:
    server.replace("config.json", lambda config: config | {"hidden_act": "relu", "rms_norm_eps": 1.0})


def whole_model(server: HostileServer) -> None:
    """The identity basis, K = d, and one step on one example."""
    local = {"optimizer": "sgd", "steps": 1, "batch_size": 1, "accumulation": 1}
    options = {"whole_up_to": 10**6, "coordinates": "float16", "bytes_per_round": 10**6, "K": None, "local": local}
    server.experiment["spec"]["algorithm"] = {"name": "ferret", **options}


def endless_step(server: HostileServer) -> None:
    local = {"steps": 1, "batch_size": 1, "accumulation": 65_536}
    server.experiment["spec"]["algorithm"] = {"name": "ferret", "local": local}


SCENARIOS: dict[str, Change] = {
    "C1: a template quotes the record in its error": chat(QUOTING),
    "C2: a template fails for some records": chat(CHOOSING),
    "C2: a tokenizer deletes everything": silent,
    "H1: one example, K = d": whole_model,
    "H3a: one endless step": endless_step,
    "H3b: a template that never ends": chat(LOOPING),
    "H3b: a template of 3 GB": chat(HUGE),
    "H3c: another activation and norm": other_activation,
}


@pytest.mark.parametrize("budget", [None, BUDGET], ids=["usual terms", "usual terms and a budget"])
@pytest.mark.parametrize("change", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_nothing_that_leaves_depends_on_the_records(
    attack, usual, change: Change, budget: dict[str, float] | None
) -> None:
    private = "".join(f"{name} = {value}\n" for name, value in (budget or {}).items())
    site_toml = usual + (f"\n[privacy]\n{private}" if budget else "")
    (first, error, _), (second, same, _) = (attack(change, site_toml, record) for record in RECORDS)
    assert described(first) == described(second)
    assert error.code == same.code
    assert failures(first) or error.code == "storage.corrupt", "it was refused, and no contribution was sent"
    assert not any(line.startswith("PUT") for line, _, _ in first.wire)


def described(server: HostileServer) -> list[tuple[str, list[tuple[str, str]], bytes]]:
    """The requests, without the server's address, the key that follows from it, and heartbeats.

    A busy machine sends heartbeats sooner.
    """
    of_the_address = {server.url.removeprefix("http://"), membership.enrolment_key(server.url, CODE, KEY)}
    return [
        (line, [(name, value) for name, value in headers if value not in of_the_address], body)
        for line, headers, body in server.wire
        if not line.split()[1].endswith("/heartbeat")
    ]


def test_the_comparison_sees_a_contribution(attack, usual) -> None:
    """Without an attack the same terms let a contribution through, and only its request differs."""

    def ends(server: HostileServer) -> None:
        server.experiment["spec"]["algorithm"]["local"].update(steps=8, batch_size=1, accumulation=4)
        server.replies[f"{ASSIGNMENT}/contribution"] = json_reply(
            {"code": "participant.revoked", "title": "", "status": 403, "detail": "enough"}, 403
        )

    small = usual.replace("share = 0.1 ", "share = 1.0 ").replace("whole_blocks = false", "whole_blocks = true")
    (first, error, _), (second, _, _) = (attack(ends, small, record) for record in RECORDS)
    assert error.code == "participant.revoked"
    differing = [one for one, other in zip(described(first), described(second), strict=True) if one != other]
    assert [line.split()[0] for line, _, _ in differing] == ["PUT"]


def test_without_terms_of_its_own_a_site_runs_no_template_that_it_has_not_allowed(attack) -> None:
    server, error, _ = attack(chat(QUOTING), None, RECORDS[0])
    assert (error.code, error.errors[0].field) == ("terms.refused", "prompt.template")
    assert b"Hannah" not in b"".join(body for _, _, body in server.wire)


def test_an_error_in_training_has_no_text(attack) -> None:
    def explode(server: HostileServer) -> None:
        server.experiment["spec"]["algorithm"] = {
            "name": "ferret",
            "local": {"optimizer": "sgd", "learning_rate": 1e30},
        }

    server, _, _ = attack(explode, None, RECORDS[0])
    assert failures(server)[0] == {
        "fence": 1,
        "code": "training.non_finite",
        "detail": "The training loss is not finite",
    }


def test_under_a_budget_every_failure_costs_a_contribution_and_the_first_one_ends_it(attack) -> None:
    """A hostile server read a record bit by bit from codes of failures, with 0.00 ε spent."""
    site_toml = "[privacy]\n" + "".join(f"{name} = {value}\n" for name, value in BUDGET.items())

    def attempt(server: HostileServer) -> None:
        server.experiment["spec"]["algorithm"] |= {"allocation": "fixed", "local": {"learning_rate": 1e30}}

    server, error, home = attack(attempt, site_toml, RECORDS[0])
    assert error.code == "participant.failed"
    assert "The training loss is not finite" in error.detail, "the site learns what went wrong"
    title = "The participant could not finish the round"
    assert failures(server) == [{"fence": 1, "code": "participant.failed", "detail": title}]
    spent = Budget(home, site_terms.of_home(home).privacy).spent()
    assert spent.released == (ReleaseCount(noise_multiplier=8.0, count=1),)


@pytest.mark.parametrize("algorithm", ["fedkseed", *slow("ferret")])
def test_hours_end_a_step_that_does_not_end(attack, algorithm: str) -> None:
    many = {"accumulation": 65_536} if algorithm == "ferret" else {"perturbations": 65_536}

    def endless(server: HostileServer) -> None:
        server.experiment["spec"]["algorithm"] = {"name": algorithm, "local": {"steps": 1, **many}}

    _, error, _ = attack(endless, "[limits]\nsteps = 50\nhours = 0.001\n", RECORDS[0])
    assert (error.code, error.errors[0].field) == ("terms.limit_reached", "hours")


def test_a_participant_keeps_to_the_base_model_that_it_began_with(attack, base_spec, tiny_model_dir, tmp_path) -> None:
    """A server that offers another model after a restart, with another digest, is refused."""
    spec, digest = base_spec
    home = tmp_path / "site"
    rows = [{"instruction": "Sing.", "input": "", "output": "la"}] * EXAMPLES
    codes: list[str] = []
    for offered in (digest, "f" * 64):
        with HostileServer(tiny_model_dir, spec, digest).running() as server:
            server.experiment["base_digest"] = offered
            server.task["base_digest"] = "e" * 64  # the round is not begun
            server.replies[FAILURE] = end_with(server)
            if not codes:
                member = Participant.enrol(server.url, CODE, "clinic", home).member
            membership.save(home, member.model_copy(update={"url": server.url}))  # pyrefly: ignore[unbound-name]
            with pytest.raises(FerretError) as raised:
                Participant(member.model_copy(update={"url": server.url}), home).run(rows, give_up_after=0)
            codes.append(raised.value.code)
            asked = list(server.asked)
    assert codes == ["participant.revoked", "server.unexpected"]
    assert not any("artifacts" in path for path in asked), "nothing is downloaded again"


def failures(server: HostileServer) -> list[dict[str, Any]]:
    return [json.loads(body) for line, _, body in server.wire if line.split()[1].endswith(FAILURE)]


def end_with(server: HostileServer) -> Reply:
    """Ends the participation with the next question for work."""

    def reply(handler: Any) -> None:
        revoked = {"code": "participant.revoked", "title": "", "status": 403, "detail": "enough"}
        server.replies["/participant/assignment"] = json_reply(revoked, 403)
        json_reply({})(handler)

    return reply
