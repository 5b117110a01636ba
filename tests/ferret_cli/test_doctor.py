from __future__ import annotations

import json
import socket


def checks(done):
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}


def test_all_is_well(ferret, free_port):
    done = ferret("doctor", "--json", FERRET_PORT=str(free_port))
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["ok"] is True
    assert {"python", "training packages", "broker", "database", "disk", "admin token", "server"} <= set(checks(done))
    assert checks(done)["training packages"]["detail"].startswith("torch ")


def test_what_is_wrong_comes_with_the_command_that_mends_it(ferret, home, free_port):
    home.mkdir()
    (home / "admin.token").write_text("secret")
    (home / "admin.token").chmod(0o644)
    (home / "ferret.db").touch()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        broker = f"redis://127.0.0.1:{free_port}/0"
        done = ferret("doctor", "--json", FERRET_PORT=str(port), FERRET_BROKER_URL=broker)
    found = checks(done)
    assert done.returncode == 1
    assert found["admin token"]["fix"] == f"chmod 600 {home / 'admin.token'}"
    assert found["database"]["fix"] == "ferret migrate"
    assert str(port) in found["server"]["detail"]
    assert found["server"]["fix"].startswith("ferret serve --port ")
    assert str(free_port) in found["broker"]["detail"]
    assert [name for name, check in found.items() if check["ok"] is False] == [
        "broker",
        "database",
        "admin token",
        "server",
    ]


def test_the_fix_for_the_database_mends_it(ferret, home, free_port):
    home.mkdir()
    (home / "ferret.db").touch()
    done = ferret("migrate", "--json")
    assert done.returncode == 0, done.stderr
    revision = json.loads(done.stdout)["revision"]
    shown = ferret("doctor", FERRET_PORT=str(free_port))
    assert shown.returncode == 0
    assert f"at revision {revision}" in shown.stdout
    assert "mend it with" in shown.stdout
    assert "\x1b[" not in shown.stdout
