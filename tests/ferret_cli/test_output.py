"""What commands print for people."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from ferret_cli.output import show_line, table


def test_columns_stand_below_each_other_whatever_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["clinic", "協和醫院", "مستشفى الأمل", "é" * 200, "e\u0301" * 10, "Klinik 🏥"]
    table(["participant", "state"], [(name, "active") for name in names])
    header, *rows = capsys.readouterr().out.splitlines()
    column = header.index("state")
    assert [cell_len(row[: row.index("active")]) for row in rows] == [column] * len(names)


def test_a_result_is_on_stdout_without_control_characters_and_leaves_it_to_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_line("\x1b[31mclinic: sent\n3 rounds")
    written = capsys.readouterr()
    assert (written.out.splitlines()[1], written.err) == ("3 rounds", "")
    assert "\x1b" not in written.out
    show_line("3 rounds", as_json=True)
    assert capsys.readouterr() == ("", "3 rounds\n")
