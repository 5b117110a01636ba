"""Every page of results in the documentation is what `ferret dev paper page` makes of the runs in its folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ferret_bench.reproduce.reruns.rerun import REMARKS, Over, rewrite

ROOT = Path(__file__).parents[4]
PAGES = {
    str(page.relative_to(ROOT)): (runs, page)
    for runs in ROOT.glob("docs/results/**/runs.jsonl")
    for page in runs.parent.glob("*.md")
    if not page.name.endswith(REMARKS)
}
USUAL = {
    "docs/results/cost/cost.md",  # with the paper's figures
    "docs/results/figures/k.md",
    "docs/results/guard/guard.md",  # with runs that failed
    "docs/results/smollm2/chat_model.md",  # with a search and verdicts
}


@pytest.mark.parametrize(
    ("runs", "page"),
    [
        pytest.param(*files, id=name, marks=[] if name in USUAL else pytest.mark.slow)
        for name, files in sorted(PAGES.items())
    ],
)
def test_the_page_is_the_runs(runs, page, tmp_path, capsys):
    folder = tmp_path / page.parent.name
    folder.mkdir()
    for given in (runs, page.with_name(f"{page.stem}{REMARKS}")):
        if given.exists():
            shutil.copy(given, folder)
    rewrite(page.stem, folder, Over(None, ()), json=False)
    for written in (f"{page.stem}.md", f"{page.stem}.csv", f"{page.stem}-rounds.csv"):
        committed = page.with_name(written)
        if committed.exists():
            assert (folder / written).read_text() == committed.read_text(), f"`ferret dev paper page {page.stem}`"
    capsys.readouterr()


def test_there_are_pages():
    assert PAGES.keys() > USUAL
