"""``make release``: the wheels, their bill of materials and their SHA-256 in ``dist/``, and the image.

It leaves the image out where no container engine runs.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from ferret_core import __version__
from scripts import bill_of_materials
from scripts.lock import ROOT

DISTRIBUTIONS = ("packaging", ".", "bench")
"""Their folders: a participant, the service, the benchmarks."""
ENGINES = ("docker", "podman")
SUMS = "SHA256SUMS"


def build_wheels(folder: Path) -> dict[str, Path]:
    """Builds the wheel of each distribution into ``folder``. The same sources make the same bytes."""
    wheels: dict[str, Path] = {}
    for name in DISTRIBUTIONS:
        before = set(folder.glob("*.whl"))
        command = [sys.executable, "-m", "hatchling", "build", "--target=wheel", f"--directory={folder.resolve()}"]
        subprocess.run(command, cwd=ROOT / name, check=True, capture_output=True, text=True)
        (wheels[name],) = set(folder.glob("*.whl")) - before
    return wheels


def build_image(tag: str) -> str:
    """Builds the image where a container engine runs. Returns one sentence about it."""
    for engine in filter(shutil.which, ENGINES):
        if subprocess.run([engine, "info"], capture_output=True, check=False).returncode == 0:
            subprocess.run([engine, "build", "--tag", tag, str(ROOT)], check=True)
            return f"image {tag} built by {engine}"
    return f"image left out: no container engine runs here; where one does: docker build --tag {tag} ."


def write_sums(folder: Path) -> None:
    """Writes the SHA-256 of every file in ``folder``, in the format of ``sha256sum --check``."""
    files = sorted(path for path in folder.iterdir() if path.name != SUMS)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (folder / SUMS).write_text("".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "dist", help="emptied first; default: dist")
    folder = parser.parse_args().folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        wheels = build_wheels(folder)
        bill = bill_of_materials.of(__version__, list(wheels.values()))
        (folder / f"ferret-{__version__}.cdx.json").write_text(bill)
        write_sums(folder)
        for line in (folder / SUMS).read_text().splitlines():
            print(line, flush=True)
        print(build_image(f"ferret:{__version__}"))
    except subprocess.CalledProcessError as error:
        sys.exit(f"make release: {' '.join(error.cmd[:4])} failed\n{error.stderr or ''}")


if __name__ == "__main__":
    main()
