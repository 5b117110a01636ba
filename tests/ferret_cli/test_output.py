"""What commands print for people."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from ferret_cli.output import table


def test_columns_stand_below_each_other_whatever_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["clinic", "協和醫院", "مستشفى الأمل", "é" * 200, "e\u0301" * 10, "Klinik 🏥"]
    table(["participant", "state"], [(name, "active") for name in names])
    header, *rows = capsys.readouterr().out.splitlines()
    column = header.index("state")
    assert [cell_len(row[: row.index("active")]) for row in rows] == [column] * len(names)
