"""What a client keeps counts exactly when its contribution does, whatever happens between."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ferret_core.client.state import ClientState, StateFolder

AA, BB, DD, EE = (letter * 64 for letter in "abde")
"""Digests of contributions."""


def kept(value: float) -> dict[str, np.ndarray]:
    return {"error": np.full(3, value, np.float32)}


def test_it_counts_once_the_contribution_is_committed(tmp_path: Path) -> None:
    state = ClientState(StateFolder(tmp_path))
    assert state.stage(AA, kept(1)) == AA
    assert state.load() == {}
    state.commit(AA)
    np.testing.assert_array_equal(state.load()["error"], kept(1)["error"])


def test_a_round_that_was_not_committed_leaves_what_was_before(tmp_path: Path) -> None:
    state = ClientState(StateFolder(tmp_path))
    state.stage(AA, kept(1))
    state.commit(AA)
    state.stage(BB, kept(2))
    assert state.load()["error"][0] == 1
    state.stage(DD, kept(3))
    state.commit(DD)
    assert state.load()["error"][0] == 3
    state.stage(EE, kept(4))
    assert {path.stem for path in tmp_path.iterdir()} == {DD, EE}, "what cannot count any more is gone"


def test_a_restart_between_upload_and_commit_loses_nothing(tmp_path: Path) -> None:
    ClientState(StateFolder(tmp_path)).stage(AA, kept(1))
    again = ClientState(StateFolder(tmp_path))
    again.commit(AA)
    assert again.load()["error"][0] == 1


def test_an_algorithm_that_keeps_nothing_leaves_no_file(tmp_path: Path) -> None:
    state = ClientState(StateFolder(tmp_path / "memory"))
    state.stage(AA, {})
    state.commit(AA)
    assert state.load() == {}
    assert not (tmp_path / "memory").exists()
