"""``make setup``: a virtual environment with every package of the lock, verified by its hash, and Ferret itself.

Only torch's small build is not verified: it comes from PyTorch's index or a configured one, and the lock has only its
version.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts import Refusal, lock, torch_build
from scripts.environment import Environment

SIZES = {"cpu": (0.8, 3.4), "cuda": (3.1, 6.7)}
"""GB downloaded and GB installed by each build: Linux x86_64, Python 3.11, an empty cache, 2026-11-25."""
BUILDERS = {"setuptools"}
CUDA = ("torch", "nvidia-", "cuda-")
STAMP = ".locked"


def set_up(folder: Path, asked: str, name: str, projects: list[str]) -> None:
    """Updates the environment in ``folder`` to the lock ``name``. Does nothing if it is current."""
    if name in lock.stale():
        raise Refusal(f"stale lock: {name} and the pyproject.toml files disagree; {lock.RENEW}")
    environment, stamp = Environment(folder), folder / STAMP
    found = stamp.read_text().split() if stamp.exists() and environment.python.exists() else []
    build, libraries, ferret = [*found, "", "", ""][:3]
    now = _digest([name]), _digest(lock.PROJECTS)
    if asked in {"", build} and (libraries, ferret) == now:
        return
    if asked not in {"", build} or libraries != now[0]:
        build = install_libraries(environment, asked or build, name)
        stamp.write_text(f"{build} {now[0]} -")
    environment.install(*projects)
    environment.compile()
    environment.check()
    stamp.write_text(" ".join([build, *now]))


def install_libraries(environment: Environment, asked: str, name: str) -> str:
    """Installs all packages of the lock ``name``. Returns the installed build of torch."""
    pins = lock.pins(name)
    small = next(pin.version for pin in pins if pin.name == "torch") + "+cpu"
    choice = torch_build.choose(
        asked, sys.platform, torch_build.has_driver(), lambda: _offered(small), lambda: torch_build.lists(small)
    )
    fetched, installed = SIZES[choice.build]
    print(f"torch for {choice.build.upper()}: {choice.why}", flush=True)
    print(f"set-up fetches {fetched} GB, which become {installed} GB in {environment.folder}", flush=True)
    require_room({environment.folder.parent: installed, Path(tempfile.gettempdir()): fetched, Path.home(): fetched})
    environment.create()
    environment.install_locked(pin for pin in pins if pin.name in BUILDERS)
    if choice.build == "cpu" and sys.platform == "linux":
        environment.install(f"torch=={small}", *([f"--index-url={choice.index}"] if choice.index else []))
        pins = [pin for pin in pins if not pin.name.startswith(CUDA)]
    environment.install_locked(pins)
    return choice.build


def require_room(needed: dict[Path, float]) -> None:
    """Raises Refusal unless the GB ``needed`` in each folder fit on its disk."""
    disks: dict[int, list[Path]] = {}
    for folder in needed:
        disks.setdefault(folder.stat().st_dev, []).append(folder)
    for folders in disks.values():
        wanted, free = sum(needed[folder] for folder in folders), shutil.disk_usage(folders[0]).free / 1e9
        if free < wanted:
            places = ", ".join(map(str, folders))
            raise Refusal(
                f"no disk space: set-up needs {wanted:.1f} GB ({places}) and {free:.1f} GB are free; make room"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venv", type=Path, default=lock.ROOT / ".venv")
    parser.add_argument(
        "--torch", default="", help="cpu or cuda; default: the installed build, or the one that fits this machine"
    )
    parser.add_argument("--service", action="store_true", help="only the service, not editable, as in the image")
    arguments = parser.parse_args()
    if arguments.service:
        name, projects = lock.RUNTIME, ["./packaging", "."]
    else:
        name, projects = lock.DEVELOPMENT, ["--editable=./packaging", "--editable=.", "--editable=./bench"]
    try:
        set_up(arguments.venv.resolve(), arguments.torch, name, projects)
    except Refusal as refusal:
        sys.exit(f"make setup: {refusal}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"make setup: {' '.join(error.cmd[:5])} failed; see its message above")


def _offered(version: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        probe = Environment(Path(folder))
        probe.create()
        return probe.offers("torch", version)


def _digest(names: list[str]) -> str:
    return hashlib.sha256(
        sys.version.encode() + b"".join((lock.ROOT / name).read_bytes() for name in names)
    ).hexdigest()


if __name__ == "__main__":
    main()
