"""What the tutorials tell a newcomer to type, typed: their files, and their commands in order on a running service."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import threading
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ferret_cli.main import app
from ferret_core.sample import model_path, quickstart_data
from ferret_sdk import Participant
from ferret_sdk.service.progress import RoundReport

ROOT = Path(__file__).parents[2]
HOSPITALS = "five-hospitals.md"
TUTORIALS = sorted(path.name for path in (ROOT / "docs/tutorials").glob("[!R]*.md") if path.name != HOSPITALS)
FILE = re.compile(r'^```\w+ title="(.+?)"\n(.*?)^```', re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ ferret (.+)$", re.MULTILINE)
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] + ': ' + message['content'] + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
)
# One short round shows that a command works; the numbers printed in the tutorials come from whole runs.
ROUND = [
    "rounds=1",
    "algorithm.name=ferret",
    "algorithm.local.steps=1",
    "evaluation.examples=4",
    "evaluation.generate_examples=0",
]


@pytest.mark.slow
@pytest.mark.parametrize("tutorial", TUTORIALS)
def test_every_command_of_a_tutorial_works(
    tutorial: str, served: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "docs/tutorials" / tutorial).read_text()
    (tmp_path / "ferret_core").symlink_to(ROOT / "ferret_core")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    stand_in(tmp_path, tmp_path / "examples/smollm2.toml")
    for name, content in FILE.findall(text):
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FERRET_HOME", str(served.home))
    experiment, code = "none was submitted", "none was listed"
    for command in COMMAND.findall(text):
        given = {"ID": experiment, "CODE_ID": code}
        arguments = [given.get(word, word) for word in shlex.split(shortened(command))]
        if arguments[0] == "join":
            break  # what follows needs two sites: test_participant.py has one
        if arguments[0] in {"serve", "doctor"} or "--push" in arguments:
            continue  # the server runs already, doctor says what this machine lacks, and the hub is not asked
        run = CliRunner().invoke(app, arguments)
        assert run.exit_code == 0, f"ferret {command}: {run.exception or run.output}"
        experiment = next(iter(re.findall(r"exp_[0-9a-f]{16}", run.output)), experiment)
        code = next(iter(re.findall(r"enr_[0-9a-f]{16}", run.output)), code)


@pytest.mark.slow
def test_five_hospitals_sum_without_the_one_that_disappears(
    served: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command of the tutorial. The sites are threads, and that of hospital E ends after round 1."""
    text = (ROOT / "docs/tutorials" / HOSPITALS).read_text()
    (tmp_path / "ferret_core").symlink_to(ROOT / "ferret_core")
    for name, content in FILE.findall(text):
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    hospitals = Hospitals(served.url, tmp_path)
    hospitals.pin_each_other(re.findall(r"^\[secure\]\nrequire.*?(?=^```)", text, re.MULTILINE | re.DOTALL)[0])
    experiment = "none was submitted"
    for command in COMMAND.findall(text):
        arguments = [experiment if word == "ID" else word for word in shlex.split(command)]
        match arguments[:2]:
            case ["site", "key"]:
                continue
            case ["submit", _]:
                quick = ("rounds=3", "round.deadline_seconds=60", "evaluation.generate_examples=0")
                told = ferret(served.home, *arguments, *(part for value in quick for part in ("--set", value)))
                experiment = re.findall(r"exp_[0-9a-f]{16}", told)[0]
            case ["code", "create"]:
                hospitals.codes = re.findall(r"\b[0-9a-f]{4}\.[\w-]{40,}", ferret(served.home, *arguments))
            case ["join", _] if "--inspect" in arguments:
                hospitals.inspect()
            case ["join", _]:
                hospitals.join()
            case ["participant", "approve"]:
                for name in hospitals.homes:
                    ferret(served.home, "participant", "approve", experiment, name)
                hospitals.gone.wait(120)
            case ["experiment", "verify"]:
                served.service.experiment(experiment).wait()
                ferret(served.home, *arguments)
            case _:
                ferret(served.home, *arguments)
    hospitals.leave()
    first, *_, last = (group for done in served.service.experiment(experiment).rounds() for group in done.groups)
    assert (first.members, first.survivors, last.survivors) == (5, 5, 4)
    shown = ferret(served.home, "experiment", "show", experiment)
    assert "read sums of the contributions of at least 3 participants, and none on its own" in shown


def ferret(home: Path, *arguments: str, **environment: str) -> str:
    """Runs a command with this home, and returns its output."""
    ended = CliRunner().invoke(app, arguments, env={"FERRET_HOME": str(home), **environment})
    assert ended.exit_code == 0, f"ferret {arguments}: {ended.exception or ended.output}"
    return ended.output


class Gone(BaseException):
    """The end of a site."""


class Hospitals:
    """Five sites of one experiment, each with its own home; ``gone`` is set once hospital E has ended."""

    def __init__(self, url: str, folder: Path) -> None:
        self.homes = {f"hospital-{letter}": folder / f"hospital-{letter}" for letter in "abcde"}
        self.codes: list[str] = []
        self.gone = threading.Event()
        self._url = url
        self._threads: list[threading.Thread] = []

    def pin_each_other(self, terms: str) -> None:
        """Writes the ``terms`` to each site, with the identities of the others."""
        for home in self.homes.values():
            home.mkdir()
        identities = {name: ferret(home, "site", "key").strip() for name, home in self.homes.items()}
        for name, home in self.homes.items():
            peers = json.dumps([identity for other, identity in identities.items() if other != name])
            (home / "site.toml").write_text(re.sub(r"peers = \[.*?\]", f"peers = {peers}", terms, flags=re.DOTALL))

    def inspect(self) -> None:
        home = next(iter(self.homes.values()))
        shown = ferret(home, "join", self._url, "--inspect", FERRET_CODE=self.codes[0])
        assert "sums of the contributions of at least 3 participants" in shown
        assert "a round may end with 4 real participants" in shown
        assert "allow it, as far as known before training" in shown

    def join(self) -> None:
        rows = [json.loads(line) for line in quickstart_data().read_text().splitlines()]
        for number, ((name, home), code) in enumerate(zip(self.homes.items(), self.codes, strict=True)):
            site = Participant.enrol(self._url, code, name, home)
            self._threads.append(threading.Thread(target=self._take_part, args=(site, rows[number:100:5])))
            self._threads[-1].start()

    def leave(self) -> None:
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()

    def _take_part(self, site: Participant, rows: list[dict[str, str]]) -> None:
        def done(report: RoundReport) -> None:
            if site.member.name == "hospital-e":
                self.gone.set()
                raise Gone

        with suppress(Gone):
            site.run(rows, on_round=done)


def stand_in(folder: Path, example: Path) -> None:
    """Puts a small model with a chat template in the place of the hub's, under the name that the tutorial downloads."""
    named = tomllib.loads(example.read_text())["model"]
    model = shutil.copytree(model_path(), folder / Path(named["source"]).name)
    (model / "chat_template.jinja").write_text(TEMPLATE)
    text = example.read_text().replace(named["source"], str(model))
    example.write_text(re.sub(r"^revision = .*\n", "", text, flags=re.MULTILINE))


def shortened(command: str) -> str:
    """The same command with as little to compute as it allows."""
    overrides = " ".join(f"--set {value}" for value in ROUND) if command.startswith(("submit", "simulate")) else ""
    return re.sub(r"--rounds \d+", "--rounds 1", f"{command} {overrides}")
