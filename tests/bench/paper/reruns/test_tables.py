from __future__ import annotations

import pytest

from ferret_bench.paper.reruns import studies
from ferret_bench.paper.reruns.markdown import plain
from ferret_bench.paper.reruns.quantity import ROUGE_L
from ferret_bench.paper.reruns.results import collect, lines, printed
from ferret_bench.paper.reruns.settings import shipped
from ferret_bench.paper.reruns.store import Store
from ferret_bench.paper.reruns.tables import table

PAPER = printed("ni_dolly")


def table_of(study, results) -> list[list[str]]:
    """The cells of the Markdown table of the study's only dataset, the rule under the heads left out."""
    heads, _, *rows = table(lines(study, results, PAPER), study.quantities).splitlines()
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in (heads, *rows)]


def test_before_any_run_has_ended_there_is_a_table_of_dashes(study, toy_grid, tmp_path):
    assert [row[2:] for row in table_of(study, collect(toy_grid(), Store(tmp_path)))[1:]] == [["–", "0"], ["–", "0"]]


def test_a_name_cannot_end_a_cell_or_begin_html():
    assert plain("a | b\n<script>") == "a \\| b &lt;script&gt;"


@pytest.mark.parametrize("kind", ["table", "figure"])
def test_everything_printed_belongs_to_a_row_a_dataset_and_a_quantity(kind):
    for name in studies.names(kind):
        paper, study = printed(name), studies.study(kind, name)
        assert paper.where
        assert paper.says
        assert paper.values.keys() <= {quantity.name for quantity in study.quantities}
        datasets = shipped("datasets.toml").keys()
        names = {entry.get("printed", row) for row, entry in shipped("rows.toml").items()}
        for by in paper.values.values():
            assert by.keys() <= datasets
            assert {row for models in by.values() for rows in models.values() for row in rows} <= names


def test_the_paper_ranks_as_it_prints():
    """In its table 2 Ferret is best in two of four columns, by what is printed."""
    tops = [
        max(rows, key=lambda row: rows[row].mean)
        for models in PAPER.values[ROUGE_L.name].values()
        for rows in models.values()
    ]
    assert tops.count("ferret") == 2
