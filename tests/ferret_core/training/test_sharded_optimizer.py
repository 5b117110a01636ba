from __future__ import annotations

from ferret_core.training.sharded_training import owners


def test_the_processes_own_about_as_much_and_all_know_who_owns_what() -> None:
    sizes = [100, 1, 40, 60, 30, 30]
    found = owners(sizes, 2)
    loads = [sum(size for size, owner in zip(sizes, found, strict=True) if owner == rank) for rank in range(2)]
    assert sorted(loads) == [130, 131]
    assert owners(sizes, 2) == found


def test_more_processes_than_parameters() -> None:
    assert owners([5, 5], 4) == [0, 1]
