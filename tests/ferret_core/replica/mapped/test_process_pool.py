"""How a model is shared out among processes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ferret_core.replica.mapped.process_pool import ranges


@given(st.lists(st.integers(1, 50), min_size=1, max_size=8), st.integers(1, 9))
def test_every_element_is_one_processs_and_no_process_has_two_more_than_another(
    sizes: list[int], processes: int
) -> None:
    shared = ranges({f"w{number}": (size,) for number, size in enumerate(sizes)}, processes)
    assert len(shared) == min(processes, sum(sizes))
    for number, size in enumerate(sizes):
        held = [part[f"w{number}"] for part in shared if f"w{number}" in part]
        assert [begin for begin, _ in held] == [0, *(end for _, end in held[:-1])]
        assert held[-1].end == size
    counts = [sum(end - begin for begin, end in part.values()) for part in shared]
    assert max(counts) - min(counts) <= 1
