"""A participant's or a server's words reach the terminal as text: they cannot move the cursor or read as others."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ferret_cli.main import main
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.sanitize import shown, shown_json, shown_lines
from ferret_core.protocol.spec import ExperimentSpec
from ferret_runtime import log_setup
from tests import documents
from tests.security.hostile import EXPERIMENT, NOW, HostileServer, body_reply, json_reply

OBEYED = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
ATTACK = "\x1b]0;owned\x07\x1b[2J\x1b[1A\x9b31m\u202egnp.exe\u2066\u200f\u2028fake: ok\r\x08\U000e0041"
PLAIN = "]0;owned[2J[1A31mgnp.exe fake: ok "
NAMES = ["Universitätsklinikum Aßlar", "مستشفى", "בית חולים", "मेडिकल", "می‌خواهم", "病院", "e\u0301", "👩‍⚕️ 🇩🇪"]


@pytest.mark.parametrize("name", NAMES)
def test_letters_of_every_script_stay(name: str) -> None:
    assert shown(name) == shown_lines(name) == name


def test_what_a_terminal_obeys_goes() -> None:
    assert shown(ATTACK) == PLAIN
    assert shown("one\r\ntwo\tthree") == "one  two three"
    assert shown_lines("one\r\ntwo\n\x1b[1Athree") == "one\ntwo\n[1Athree"
    assert not any(OBEYED.search(shown(chr(code))) for code in range(sys.maxunicode + 1))
    assert shown("\ud800x") == "x"


def test_json_keeps_the_value_and_shows_nothing_obeyed() -> None:
    text = json.dumps({"reason": ATTACK, "names": NAMES}, ensure_ascii=False)
    assert not OBEYED.search(shown_json(text))
    assert json.loads(shown_json(text)) == {"reason": ATTACK, "names": NAMES}


def test_errors_and_names_are_stripped_where_they_are_made(toy_spec: Callable[..., ExperimentSpec]) -> None:
    """So that what the API stores is harmless on the dashboard and to every other client too."""
    error = FerretError.of_field("dataset.invalid", f"field{ATTACK}", ATTACK, ATTACK)
    told = error.to_json()
    assert not OBEYED.search(told["detail"])
    assert not OBEYED.search(told["errors"][0]["field"] + told["errors"][0]["message"])
    assert toy_spec(name=f"trial {ATTACK}").name == f"trial {PLAIN}"


@pytest.fixture
def server(tmp_path: Path, toy_spec: Callable[..., ExperimentSpec]) -> Iterator[HostileServer]:
    """Every word of its answers is an attack."""
    hostile = HostileServer(tmp_path, toy_spec().model_dump(mode="json"), "0" * 64)
    reason = {"code": "quorum.missed", "title": ATTACK, "status": 409, "detail": f"because {ATTACK}", "errors": []}
    stall = {"code": ATTACK, "detail": f"stalled {ATTACK}", "since": NOW}
    hostile.experiment |= {"name": f"trial {ATTACK}", "state": "failed", "error": reason, "stalled": stall}
    hostile.experiment |= {
        "algorithm": ATTACK,
        "dataset": ATTACK,
        "metrics": {f"loss{ATTACK}": {"first": 1.0, "last": 1.0, "best": 1.0}},
    }
    of = f"/experiments/{EXPERIMENT}"
    rejection = {"participant": ATTACK, "round": 1, "code": ATTACK, "detail": f"refused {ATTACK}", "count": 1}
    seconds = {"seq": 1, "type": f"experiment.{ATTACK}", "round": None, "data": {"reason": ATTACK}, "time": NOW}
    last = {"seq": 2, "type": "experiment.failed", "round": None, "data": {"error": reason}, "time": NOW}
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in (seconds, last)).encode()
    left = [body_reply(stream), body_reply(b"", 204)]
    hostile.replies |= {
        "/experiments": json_reply(
            documents.page(documents.listed_experiment(**hostile.experiment) | {"stalled": ATTACK})
        ),
        f"{of}/rounds": json_reply({"items": [], "next_cursor": None}),
        f"{of}/rejections": json_reply({"items": [rejection], "next_cursor": None}),
        f"{of}/events/stream": lambda handler: left.pop(0)(handler),
        f"{of}/enrolments": json_reply(
            {
                "id": "enr_0123456789abcdef",
                "code": ATTACK,
                "expires_at": NOW,
                "command": f"run {ATTACK}",
                "group": None,
                "approval": False,
            }
        ),
        f"{of}:pause": json_reply({"code": "experiment.conflict", "detail": f"no {ATTACK}", "errors": []}, 409),
    }
    with hostile.running():
        yield hostile


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["experiment", "list"], "trial"),
        (["experiment", "show", EXPERIMENT], "because"),
        (["experiment", "watch", EXPERIMENT], "because"),
        (["code", "create", EXPERIMENT], "run"),
        (["experiment", "pause", EXPERIMENT], "no "),
    ],
    ids=lambda value: value[1] if isinstance(value, list) else None,
)
def test_the_commands_show_words_as_words(
    server: HostileServer,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    command: list[str],
    said: str,
    as_json: bool,
) -> None:
    arguments = ["ferret", *command, *(["--json"] if as_json else [])]
    monkeypatch.setattr(sys, "argv", arguments)
    monkeypatch.setenv("FERRET_URL", server.url)
    monkeypatch.setenv("FERRET_TOKEN", "token")
    with pytest.raises(SystemExit):
        main()
    out, err = capfd.readouterr()
    assert said in out + err
    assert "owned" in out + err
    assert not OBEYED.search(out + err), repr(OBEYED.findall(out + err))


@pytest.mark.parametrize("format", ["text", "json"])
def test_logs_show_words_as_words(
    capfd: pytest.CaptureFixture[str], own_logging: None, format: log_setup.LogFormat
) -> None:
    log_setup.configure("info", format)
    with log_setup.bound(participant=f"clinic {ATTACK}"):
        logging.getLogger("site").info("gave up: %s", ATTACK + "\nforged entry")
        try:
            raise ValueError(ATTACK)
        except ValueError:
            logging.getLogger("site").exception("failed")
    err = capfd.readouterr().err
    assert "owned" in err
    assert not OBEYED.search(err)
    assert not re.search("^forged entry", err, re.MULTILINE)
