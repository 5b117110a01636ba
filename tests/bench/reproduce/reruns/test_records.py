from __future__ import annotations

from ferret_bench.reproduce.reruns.records import Store


def test_a_run_is_found_again_with_all_its_rounds(tmp_path, toy_grid, ended):
    cell = toy_grid().cells[0]
    Store(tmp_path).add(ended(cell, [3.0, 1 / 3]))
    again = Store(tmp_path)
    assert again.last(cell.key) == ended(cell, [3.0, 1 / 3])
    assert again.attempts(cell.key) == 1
    assert again.last("another") is None


def test_a_line_cut_off_while_it_was_written_does_no_harm(tmp_path, toy_grid, ended):
    first, second, third = toy_grid().cells[:3]
    store = Store(tmp_path)
    store.add(ended(first, [3.0]))
    store.add(ended(second, [3.0]))
    whole = store.path.read_bytes()
    store.path.write_bytes(whole[:-40])
    torn = Store(tmp_path)
    assert torn.last(second.key) is None
    torn.add(ended(third, [3.0]))
    again = Store(tmp_path)
    assert again.last(first.key) is not None
    assert again.last(third.key) is not None


def test_the_last_of_several_attempts_counts(tmp_path, toy_grid, ended):
    cell = toy_grid().cells[0]
    store = Store(tmp_path)
    store.add(ended(cell, [], {"code": "training.non_finite", "detail": "no number"}))
    store.add(ended(cell, [2.0]))
    last = Store(tmp_path).last(cell.key)
    assert last is not None
    assert last.error is None
    assert store.attempts(cell.key) == 2
