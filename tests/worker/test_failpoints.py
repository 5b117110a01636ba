"""Killed at every point where it could matter: a fresh process ends the experiment as if nothing had happened."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from sqlalchemy.engine import make_url

from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.system.failpoints import NAMES

pytestmark = pytest.mark.xdist_group("failpoints")  # one process to fork them all from
# Other moments than those of simulated clients in an undisturbed run.
IN_REDONE_WORK = ["storage.renewed"]
IN_COLLECTING = ["collect.marked", "storage.deleted"]
IN_REPAIR = ["repair.rebuilt"]
AT_THE_EDGE = {"upload", "participant", "state", "sent_log"}
WITH_A_REAL_PARTICIPANT = [name for name in NAMES if name.split(".")[0] in AT_THE_EDGE]
# tests/ferret_cli/commands/test_backup.py, tests/ferret_sdk/participant/test_resumable_upload.py,
# tests/ferret_core/storage/test_s3.py, tests/ferret_sdk/participant/test_secure_state.py
ELSEWHERE = [name for name in NAMES if name.split(".")[0] in {"backup", "restore", "parts", "bucket", "secure"}]
OTHER = [*IN_REDONE_WORK, *IN_COLLECTING, *IN_REPAIR, *WITH_A_REAL_PARTICIPANT, *ELSEWHERE]
UNDISTURBED = [name for name in NAMES if name not in OTHER]
IN_TRANSACTIONS = [name for name in UNDISTURBED if name.startswith("database.")]


class Forks:
    """The process of ``fork_server.py``: each answer comes from a fresh child of it."""

    def __init__(self, log: Path, spec: dict[str, Any]) -> None:
        self._log = log.open("w")
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("fork_server.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # numpy would start one for each core
        )
        self._tell(spec)

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdout is not None
        self._tell(request)
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer

    def _tell(self, value: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(value) + "\n")
        self._process.stdin.flush()

    def close(self) -> None:
        self._process.communicate()
        self._log.close()


class Home(NamedTuple):
    """A service's folder and database; ``ids`` are its one experiment's and, if it has one, the real participant's."""

    forks: Forks
    path: Path
    database_url: str
    ids: dict[str, str]

    def run(self, work: str, failpoint: str = "", **more: Any) -> Any:
        """What the work gave in a fresh process; None if the failpoint killed that."""
        where = {"home": str(self.path), "database_url": self.database_url}
        answer = self.forks.ask(work=work, failpoint=failpoint, **where, **self.ids, **more)
        if "signal" in answer:
            assert (bool(failpoint), answer["signal"]) == (True, signal.SIGKILL)
            return None
        return answer["result"]


class Template:
    """A home with a submitted experiment, of which there can be copies, and how the undisturbed one ends."""

    def __init__(self, home: Home) -> None:
        self._home = home
        with self.copy() as copy:
            self.end = copy.run("finish")

    @contextmanager
    def copy(self) -> Iterator[Home]:
        path = self._home.path.with_name("copy")
        shutil.copytree(self._home.path, path)
        try:
            with self._database(path) as url:
                yield self._home._replace(path=path, database_url=url)
        finally:
            shutil.rmtree(path)

    @contextmanager
    def _database(self, home: Path) -> Iterator[str]:
        url = make_url(self._home.database_url)
        if url.get_backend_name() == "sqlite":
            yield f"sqlite:///{home}/ferret.db"
            return
        copy = url.set(database=f"{url.database}_copy")
        with psycopg.connect(url.set(database="postgres").render_as_string(False), autocommit=True) as server:
            server.execute(f"CREATE DATABASE {copy.database} TEMPLATE {url.database}".encode())
            server.execute(f"ALTER DATABASE {copy.database} SET synchronous_commit = off".encode())
            try:
                yield copy.render_as_string(False)
            finally:
                server.execute(f"DROP DATABASE {copy.database} WITH (FORCE)".encode())


@pytest.fixture(scope="module")
def spec(tiny_model_dir: Path, toy_data: tuple[Path, Path]) -> dict[str, Any]:
    """Two rounds of two clients that keep something from one to the next."""
    spec = {
        "name": "toy",
        "rounds": 2,
        "model": {"source": str(tiny_model_dir)},
        "dataset": {"name": "jsonl", "train": str(toy_data[0]), "test": str(toy_data[1])},
        "participants": {"simulated": 2},
        "algorithm": {"name": "toy", "local": {"learning_rate": 1e-2, "steps": 1, "batch_size": 2}},
        "server": {"learning_rate": 64, "step_guard": True, "max_loss_rise": 0, "development_examples": 4},
        "evaluation": {"examples": 2, "generate_examples": 0, "split": "validation", "validation_share": 0.4},
    }
    return ExperimentSpec.model_validate(spec).model_dump(mode="json")


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory, spec: dict[str, Any]) -> Iterator[Forks]:
    running = Forks(tmp_path_factory.mktemp("forks") / "log", spec)
    yield running
    running.close()


@pytest.fixture(scope="module")
def submitted(
    forks: Forks, tmp_path_factory: pytest.TempPathFactory, toy_data: tuple[Path, Path]
) -> Callable[[dict[str, Any], str | None], Template]:
    """``submitted(spec)``: in a home of its own, in the database of a URL or an SQLite file."""

    def submit(spec: dict[str, Any], database_url: str | None = None) -> Template:
        path = tmp_path_factory.mktemp("service") / "home"
        path.mkdir()
        home = Home(forks, path, database_url or f"sqlite:///{path}/ferret.db", {})
        ids = home.run("submit", spec=spec)
        return Template(home._replace(ids={"examples": str(toy_data[0]), **ids}))

    return submit


@pytest.fixture(scope="module")
def on_sqlite(submitted: Callable[..., Template], spec: dict[str, Any]) -> Template:
    return submitted(spec)


@pytest.fixture(scope="module")
def on_postgresql(
    submitted: Callable[..., Template],
    spec: dict[str, Any],
    postgresql: Callable[[], AbstractContextManager[str]],
) -> Iterator[Template]:
    with postgresql() as url:
        yield submitted(spec, url)


@pytest.fixture(scope="module")
def with_a_real_participant(submitted: Callable[..., Template], spec: dict[str, Any]) -> Template:
    return submitted({**spec, "participants": {**spec["participants"], "simulated": 1, "edge": 1}})


@pytest.fixture(scope="module")
def kills(amount: Callable[[int, int], int]) -> int:
    """How often each point is killed in a row; on SQLite, at how many of its first hits, or at all that a run has."""
    return amount(1, 5)


def kill(template: Template, name: str, kills: int) -> int:
    """Kills a run at each of the point's first hits, and sees it ended by another process; how often it was killed."""
    for hit in range(1, kills + 1):
        with template.copy() as home:
            if home.run("finish", f"{name}:{hit}") is not None:
                return hit - 1
            assert home.run("finish") == template.end, f"{name}:{hit}"
    return kills


def kill_in_a_row(
    template: Template,
    name: str,
    kills: int,
    work: str = "finish",
    before: Callable[[Home], object] = lambda home: None,
) -> None:
    """Kills whoever comes to the point, one after the other, before it is let go on to the end.

    Where a run has the point fewer times than that, others are killed likewise. ``before`` brings the home to where the
    work has the point at all.
    """
    killed = 0
    while killed < kills:
        with template.copy() as home:
            before(home)
            for _ in range(kills - killed):
                if home.run(work, f"{name}:1") is not None:
                    break
                killed += 1
            else:
                home.run(work)
            assert killed, f"{name} is never come to"
            assert home.run("finish") == template.end, f"{name} after {killed} kills"


def kill_one_after_the_other(template: Template, names: list[str]) -> None:
    """One experiment, whose processes are killed at these points: each where the one before left the work."""
    with template.copy() as home:
        for name in names:
            assert home.run("finish", f"{name}:1") is None, f"{name} is never come to"
        assert home.run("finish") == template.end


def test_the_undisturbed_experiment_is_whole(on_sqlite: Template) -> None:
    end = on_sqlite.end
    assert end["state"][0] == "completed"
    assert [round_[:3] for round_ in end["rounds"]] == [[1, 1, "committed"], [2, 1, "committed"]]
    assert len(end["contributions"]) == 4
    assert end["damaged"] == end["unnamed"] == []


def test_a_kill_at_every_point_loses_and_doubles_nothing(on_sqlite: Template) -> None:
    """The base model's points come first, because a run has them once."""
    once = [name for part in ("checkpoints.", "coordinate.") for name in UNDISTURBED if name.startswith(part)]
    kill_one_after_the_other(on_sqlite, [*once, *(name for name in UNDISTURBED if name not in once)])


@pytest.mark.postgresql
@pytest.mark.slow
def test_nor_does_one_in_a_transaction_on_postgresql(on_postgresql: Template) -> None:
    kill_one_after_the_other(on_postgresql, IN_TRANSACTIONS)


@pytest.mark.slow
def test_nor_does_one_at_every_point_of_the_edge(with_a_real_participant: Template) -> None:
    """The API, the worker and the participant die together; each goes on from what it has on disk."""
    kill_one_after_the_other(with_a_real_participant, WITH_A_REAL_PARTICIPANT)


@pytest.mark.slow
@pytest.mark.parametrize("name", UNDISTURBED)
def test_a_kill_loses_and_doubles_nothing(on_sqlite: Template, kills: int, name: str) -> None:
    assert kill(on_sqlite, name, kills) >= 1


@pytest.mark.slow
@pytest.mark.postgresql
@pytest.mark.parametrize("name", UNDISTURBED)
def test_nor_do_many_in_a_row_on_postgresql(on_postgresql: Template, kills: int, name: str) -> None:
    kill_in_a_row(on_postgresql, name, kills)


@pytest.mark.parametrize("name", IN_REDONE_WORK)
@pytest.mark.slow
def test_nor_does_a_second_kill_in_what_is_done_again(on_sqlite: Template, kills: int, name: str) -> None:
    kill_in_a_row(on_sqlite, name, kills, before=lambda home: home.run("finish", "aggregate.written:1"))


@pytest.mark.parametrize("name", IN_COLLECTING)
def test_nor_does_one_while_garbage_is_collected(on_sqlite: Template, kills: int, name: str) -> None:
    """The files of a round that is not committed are garbage to a collector that gives no grace."""
    kill_in_a_row(on_sqlite, name, kills, "collect", lambda home: home.run("finish", "aggregate.written:2"))


@pytest.mark.parametrize("name", IN_REPAIR)
@pytest.mark.slow
def test_nor_does_one_while_files_are_rebuilt(on_sqlite: Template, kills: int, name: str) -> None:
    def rot(home: Home) -> None:
        home.run("finish")
        for path in home.path.glob("storage/*/*/*"):
            path.write_bytes(b"rotten")

    kill_in_a_row(on_sqlite, name, kills, "repair", rot)


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_A_REAL_PARTICIPANT)
def test_nor_do_many_in_a_row_at_the_edge(with_a_real_participant: Template, kills: int, name: str) -> None:
    kill_in_a_row(with_a_real_participant, name, kills)
