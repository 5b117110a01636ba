"""``python -m ferret_bench.gpu`` where there is no GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import typer

from ferret_bench.gpu.__main__ import main


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so_and_names_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        main(out=tmp_path / "out")
    said = capsys.readouterr().err
    assert ended.value.exit_code == 1
    assert "There is no GPU here" in said
    assert "run `make gpu`" in said
    assert not (tmp_path / "out").exists()
