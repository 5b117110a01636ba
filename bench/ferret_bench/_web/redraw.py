"""Time of the dashboard's drawing functions, called from an otherwise empty page."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from playwright.sync_api import Browser

from ferret_core.protocol.errors import FerretError

WEB = Path(__file__).parents[3] / "web"


def milliseconds(browser: Browser, kind: str, sizes: tuple[int, int], times: int) -> list[float]:
    """Returns the milliseconds of each of ``times`` redraws of ``lines`` (series, points) or ``cells`` (rows, columns),
    until the pixels are there.
    """
    with tempfile.TemporaryDirectory(prefix="ferret-bench-") as folder:
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.add_style_tag(path=WEB / "src" / "app" / "styles" / "tokens.css")
        page.add_script_tag(path=_built(Path(folder)))
        found: list[float] = page.evaluate(f"([sizes, times]) => redraw.{kind}(...sizes, times)", [sizes, times])
        page.close()
        return found


def _built(folder: Path) -> Path:
    """Builds the page. Raises ``dependency.missing`` outside a checkout with a buildable dashboard."""
    if not (WEB / "node_modules").is_dir():
        raise FerretError("dependency.missing", f"{WEB} has no node_modules; in a checkout run: make web")
    command = [
        "npx",
        "vite",
        "build",
        "--config",
        "bench/vite.config.ts",
        "--outDir",
        str(folder),
        "--logLevel",
        "error",
    ]
    subprocess.run(command, cwd=WEB, check=True, stdout=subprocess.DEVNULL)
    return folder / "redraw.js"
