"""Runs a small study in this process: what is kept, what is written, what is run again."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from matplotlib import image

from ferret_cli.paper.reruns.in_process import simulated
from ferret_cli.paper.reruns.rerun import finish, open_cells, write_all
from ferret_cli.paper.reruns.results import collect
from ferret_cli.paper.reruns.store import Store
from ferret_core.simulate import simulate


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("study")


@pytest.fixture(scope="module")
def run(toy_grid, folder):
    """The grid, run once for all tests of this file."""
    found, store = toy_grid(), Store(folder)
    finish(open_cells(found, store, retry=False), len(found.cells), store, simulated)
    return found, store


def test_every_run_is_the_one_that_simulate_makes(run):
    found, store = run
    cell = found.cells[0]
    kept, again = store.last(cell.key), simulate(cell.spec)
    assert kept.digest == again.digest
    assert [done.metrics["eval_loss"] for done in kept.rounds if "eval_loss" in done.metrics] == [
        done.metrics["eval_loss"] for done in again.rounds if "eval_loss" in done.metrics
    ]
    assert [done.bytes_up for done in kept.rounds] == [done.bytes_up for done in again.rounds]


def test_what_has_ended_is_not_run_again(run):
    found, store = run
    assert open_cells(found, Store(store.path.parent), retry=True) == []
    assert len(store.path.read_text().splitlines()) == 4


def test_only_what_is_missing_is_run(run, toy_grid):
    _, store = run
    changed = toy_grid(["fedavg.rounds=1"])
    assert [cell.row.name for cell in open_cells(changed, store, retry=False)] == ["fedavg", "fedavg"]


def test_a_failure_is_recorded_and_the_rest_goes_on(toy_grid, tmp_path, capsys):
    found, store = toy_grid(["ferret.algorithm.bytes_per_round=40"]), Store(tmp_path)
    finish(open_cells(found, store, retry=False), 4, store, simulated)
    results = collect(found, store)
    assert [cell.row.name for cell, _ in results.failures()] == ["ferret", "ferret"]
    assert results.failures()[0][1]["code"] == "spec.invalid"
    assert [len(results.runs(row, found.columns[0])) for row in found.rows] == [0, 2]
    assert "failed: " in capsys.readouterr().err
    assert open_cells(found, store, retry=False) == []
    assert {cell.row.name for cell in open_cells(found, store, retry=True)} == {"ferret"}


class _Page(HTMLParser):
    """Collects what a page would load, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.loads += [value for name, value in attrs if name in {"src", "srcset", "href"}]
        if tag not in {"meta", "img", "source"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def written(run, study, folder):
    return write_all("frontier", study, collect(*run), folder, "ferret paper figure frontier --model '<model>'")


def test_the_page_stands_alone_and_is_whole(written):
    page = _Page(written.html.read_text())
    assert page.open == []
    assert len(page.loads) == 4, "two panels in two themes"
    assert all(one.startswith("data:image/png;base64,") for one in page.loads)
    assert "url(" not in written.html.read_text()
    text = " ".join("".join(page.text).split())
    assert "iid split over 2 clients, all of them in a round; 2 rounds; loss on 4 held-out examples" in text
    assert "ferret paper figure frontier --model '<model>'" in text


def test_the_picture_and_the_tables_can_be_read(written):
    assert image.imread(written.png).shape[1] == 1920
    rows = list(csv.DictReader(written.csv.read_text().splitlines()))
    assert [(row["row"], row["seeds"]) for row in rows] == [("ferret", "2"), ("fedavg", "2")]
    assert float(rows[0]["bytes_up_mean"]) < float(rows[1]["bytes_up_mean"]) / 10
    rounds = list(csv.DictReader(written.rounds.read_text().splitlines()))
    assert len(rounds) == 4 * 3


def test_a_table_is_drawn_too(run, study, folder):
    table = write_all("ni_dolly", replace(study, panels=()), collect(*run), folder, "ferret paper table ni_dolly")
    picture = image.imread(table.png)
    assert len({tuple(pixel) for pixel in picture.reshape(-1, picture.shape[-1])[::7].round(2).tolist()}) > 10
    assert re.findall(r"<(?:img|source)", table.html.read_text()) == []


def test_a_record_says_where_it_ran(run):
    _, store = run
    kept = json.loads(store.path.read_text().splitlines()[0])
    assert kept["machine"]["versions"]["torch"]
    assert kept["via"] == "simulate"
    assert kept["spec"]["algorithm"]["local"]["steps"] == 2
