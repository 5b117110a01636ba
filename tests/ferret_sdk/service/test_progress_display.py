"""Runs as a person sees them: in a notebook, in a terminal, as tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pandas
import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from ferret_sdk import Service
from ferret_sdk.service import run as run_module
from ferret_sdk.service.run import Run
from tests import documents
from tests.refusals import refused

EVIL = '<script>alert("x")</script>'
TIME = "2026-01-01T00:00:{:02}Z"


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "POLL_SECONDS", 0.02)


@pytest.fixture
def notebook() -> Iterator[CapturingDisplayPublisher]:
    """What the cells of a notebook show: IPython's own shell, configured as a kernel configures it."""
    shell = InteractiveShell.instance(config=Config({"IPKernelApp": {"parent_appname": "test"}}))
    shell.display_pub = CapturingDisplayPublisher(shell=shell)
    yield shell.display_pub
    InteractiveShell.clear_instance()


def run_of(server: Any, experiment: dict[str, Any], *later: dict[str, Any]) -> Run:
    answers = [experiment, *({**experiment, **changes} for changes in later)]
    server.script(*(lambda exchange, told=told: exchange.json(told) for told in answers))
    return Service(server.url).experiment(experiment["id"])


class Tags(HTMLParser):
    """The names of all elements, and the attributes that there are."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_a_notebook_shows_a_run_as_a_table_without_colours_or_scripts(server: Any, experiment: dict[str, Any]) -> None:
    stalled = {"code": "participants.missing", "detail": EVIL, "since": TIME.format(0)}
    text = run_of(server, {**experiment, "name": EVIL, "stalled": stalled})._repr_html_()
    assert Tags(text).names == {"p", "strong", "a", "table", "tr", "th", "td"}
    assert Tags(text).attributes == {"href", "target", "rel"}
    assert f"{server.url}/experiments/{experiment['id']}" in text
    assert "1 of 3" in text
    assert "2.5000" in text


def test_a_notebook_shows_a_list_and_looping_over_it_twice_asks_twice(server: Any) -> None:
    server.answer = lambda exchange: exchange.json(documents.page(*[documents.listed_experiment(name=EVIL)] * 21))
    found = Service(server.url).experiments(state=["running"])
    text = found._repr_html_()
    assert Tags(text).names == {"a", "table", "tr", "th", "td", "p"}
    assert text.count("<tr>") == 21
    assert "and more" in text
    assert repr(found) == "Experiments(state=['running'])"
    assert [len(list(found)), len(list(found))] == [21, 21]


def test_an_empty_list_says_so(server: Any) -> None:
    server.answer = lambda exchange: exchange.json(documents.page())
    assert "No experiments" in Service(server.url).experiments()._repr_html_()


def test_waiting_says_each_change_once(
    server: Any, experiment: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(server, experiment, {}, {}, {"round": 2}, {"state": "completed", "round": 3})
    run.wait()
    said = capsys.readouterr()
    assert said.out == ""
    assert [line.removeprefix(f"{run.id}: ") for line in said.err.splitlines()] == [
        "running, round 1 of 3, evaluation loss 1.5000",
        "running, round 2 of 3, evaluation loss 1.5000",
        "completed, round 3 of 3, evaluation loss 1.5000",
    ]


def test_waiting_can_be_silent(server: Any, experiment: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    run_of(server, experiment, {"state": "completed"}).wait(progress=False)
    assert capsys.readouterr() == ("", "")


def test_in_a_notebook_waiting_keeps_one_output_up_to_date(
    server: Any, experiment: dict[str, Any], notebook: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    run_of(server, experiment, {}, {"round": 2}, {"state": "completed", "round": 3}).wait()
    shown = [(output["update"], output["transient"]["display_id"]) for output in notebook.outputs]
    assert [update for update, _ in shown] == [False, True, True]
    assert len({display_id for _, display_id in shown}) == 1
    assert "3 of 3" in notebook.outputs[-1]["data"]["text/html"]
    assert capsys.readouterr().err == ""


def test_metrics_become_a_table_with_a_row_for_each_round(server: Any, experiment: dict[str, Any]) -> None:
    run = run_of(server, experiment)
    server.answer = lambda exchange: exchange.json(
        documents.metric_series(eval_loss=[(0, 3.0), (2, 1.0)], train_loss=[(1, 2.5), (2, 2.0)])
    )
    table = run.to_pandas()
    assert list(table.index) == [0, 1, 2]
    assert list(table["eval_loss"].dropna()) == [3.0, 1.0]
    assert pandas.isna(table.loc[1, "eval_loss"])
    assert table.loc[2, "bytes_up_so_far"] == 200
    assert isinstance(table["time"].dtype, pandas.DatetimeTZDtype)


def test_rounds_become_a_table(server: Any, experiment: dict[str, Any]) -> None:
    run = run_of(server, experiment)
    server.answer = lambda exchange: exchange.json(documents.page(documents.round_(bytes_up=7)))
    table = run.to_pandas("rounds")
    assert table.loc[1, ["state", "accepted", "bytes_up"]].tolist() == ["committed", 3, 7]
    server.answer = lambda exchange: exchange.json(documents.page())
    assert run.to_pandas("rounds").empty


def test_without_pandas_the_package_to_install_is_named(
    server: Any, experiment: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(server, experiment)
    server.answer = lambda exchange: exchange.json(documents.metric_series())
    monkeypatch.setitem(sys.modules, "pandas", None)
    with refused("dependency.missing", "'ferret-participant[notebook]'"):
        run.to_pandas()
