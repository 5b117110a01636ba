"""A server, and the command at it as an administrator or with another token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import ADMIN, Live
from tests.api.conftest import make_settings as make_settings
from tests.api.people import PASSWORD

Cli = Callable[..., Any]


@pytest.fixture
def settings() -> dict[str, Any]:
    """Of the server, where a test has its own."""
    return {}


@pytest.fixture
def live(make_settings: Any, settings: dict[str, Any]) -> Iterator[Live]:
    live = Live(make_settings(**settings))
    yield live
    live.stop()


@pytest.fixture
def cli(live: Any, ferret_in_process: Any) -> Cli:
    def run(*arguments: str, token: str = ADMIN) -> Any:
        return ferret_in_process(*arguments, FERRET_URL=live.url, FERRET_TOKEN=token)

    return run


@pytest.fixture
def password_file(tmp_path: Path) -> str:
    path = tmp_path / "password"
    path.write_text(f"{PASSWORD}\n")
    return str(path)
