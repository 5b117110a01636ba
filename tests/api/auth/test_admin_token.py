from __future__ import annotations

import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ferret_api.auth import admin_token
from ferret_api.settings import ApiSettings
from tests.refusals import refused

Make = Callable[..., ApiSettings]


def test_the_first_start_makes_a_token_that_only_its_owner_reads(make_settings: Make, home: Path) -> None:
    umask = os.umask(0)
    try:
        made = admin_token.load(make_settings(admin_token=None))
    finally:
        os.umask(umask)
    file = home / "admin.token"
    assert file.read_text().strip() == made.value
    assert len(made.value) >= 43
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in home.iterdir() if "token" in path.name] == ["admin.token"]


def test_the_next_start_reads_the_same_token_and_mends_its_mode(make_settings: Make, home: Path) -> None:
    made = admin_token.load(make_settings(admin_token=None))
    (home / "admin.token").chmod(0o644)
    assert admin_token.load(make_settings(admin_token=None)) == made
    assert stat.S_IMODE((home / "admin.token").stat().st_mode) == 0o600


def test_processes_that_start_at_once_agree_on_one_token(make_settings: Make) -> None:
    settings = make_settings(admin_token=None)
    with ThreadPoolExecutor(16) as pool:
        found = set(pool.map(lambda _: admin_token.load(settings), range(64)))
    assert len(found) == 1


def test_a_configured_token_leaves_no_file(make_settings: Make, home: Path) -> None:
    assert admin_token.load(make_settings(admin_token="a-configured-token")).value == "a-configured-token"
    assert not (home / "admin.token").exists()


def test_an_empty_file_is_named(make_settings: Make, home: Path) -> None:
    (home / "admin.token").write_text("\n")
    with refused("dependency.missing", "is empty: delete it"):
        admin_token.load(make_settings(admin_token=None))


def test_what_is_derived_from_the_token_does_not_give_it_away() -> None:
    token = admin_token.AdminToken("a-configured-token")
    assert token.cookie == f"ferret_{token.fingerprint}"
    assert len(token.fingerprint) == 8
    assert token.value not in token.cookie
    assert token.is_token("a-configured-token")
    assert not token.is_token("a-configured-tokeN")
    assert not token.is_token("ünïcode")
