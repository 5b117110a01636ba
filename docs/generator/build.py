"""Builds the documentation site: ``python docs/generator/build.py`` (``make docs``) writes ``site/html/``.

Zensical reads one folder, so the pages are gathered in ``site/pages/``: ``docs/``, the pages at the repository's root,
the files that pages link to, and the generated references. Links that work in the repository become links of the site.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import cli
import errors
import rest
import specification
import yaml

from ferret_core import __version__

ROOT = Path(__file__).parents[2]
SITE = ROOT / "site"
PAGES = SITE / "pages"
HTML = SITE / "html"
AT_ROOT = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
COPIED = {"openapi.json", "api/ferret_api/static/favicon.svg"}
REMARKS = "*-remarks.md"
"""Text that a page of results already contains."""
LINK = re.compile(r"(?<=\]\()(?!\w+:)([^)#\s]+)")
LOADED = re.compile(
    r'<(?:script|img|iframe)[^>]*\ssrc="?(?:https?:)?//[^ >]*|<link[^>]*"stylesheet"[^>]*href="?(?:https?:)?//[^ >]*'
)


def main() -> None:
    shutil.rmtree(SITE, ignore_errors=True)
    gather()
    write_configuration()
    built = subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=SITE, check=False)
    if built.returncode:
        sys.exit("the documentation site has errors, see above")
    if elsewhere := {f"{path}: {found}" for path in HTML.rglob("*.html") for found in LOADED.findall(path.read_text())}:
        sys.exit("pages must load nothing from other sites:\n" + "\n".join(sorted(elsewhere)))


def gather() -> None:
    """Writes every page and file of the site to ``site/pages/``."""
    shutil.copytree(ROOT / "docs", PAGES, ignore=shutil.ignore_patterns("generator", REMARKS))
    pages = [path.relative_to(PAGES).as_posix() for path in PAGES.rglob("*.md")]
    for path in [*(f"docs/{page}" for page in pages), *AT_ROOT]:
        gather_page(path)
    for path in [*COPIED, "docs/generator/site.css"]:
        shutil.copy(ROOT / path, PAGES)
    openapi = json.loads((ROOT / "openapi.json").read_text())
    for name, text in rest.pages(openapi).items():
        write(f"reference/rest/{name}.md", text)
    appended = {"cli": cli.page(), "errors": errors.page(), "rest": rest.index(openapi)}
    for name, text in (appended | {"specification": specification.page()}).items():
        with (PAGES / f"reference/{name}.md").open("a") as page:
            page.write(text)


def gather_page(path: str) -> None:
    """Writes the repository's Markdown file ``path``, and a page for every source file that it links to."""

    def rewritten(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link[1]))
        if not (ROOT / target).is_file():
            sys.exit(f"{path}: the link {link[1]!r} leads to no file")
        if where(target).startswith("source/"):
            code = f"````{Path(target).suffix[1:]}\n{(ROOT / target).read_text()}````\n"
            write(where(target), f"---\nsearch: {{exclude: true}}\n---\n\n# {target}\n\n{code}")
        return posixpath.relpath(where(target), posixpath.dirname(where(path)) or ".")

    write(where(path), LINK.sub(rewritten, (ROOT / path).read_text()))


def where(path: str) -> str:
    """Where the site has the repository's file ``path``."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return Path(path).name if path in COPIED else AT_ROOT.get(path, f"source/{path}.md")


def write(uri: str, text: str) -> None:
    target = PAGES / uri
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def write_configuration() -> None:
    """``docs/generator/site.yml`` with the pages that its patterns stand for; every page must be in the navigation."""
    configuration = yaml.safe_load((ROOT / "docs/generator/site.yml").read_text())
    configuration["site_name"] += f" {__version__}"
    configuration["nav"] = expanded(configuration["nav"])
    configuration["copyright"] = f"Ferret {__version__}, Apache License 2.0"
    listed = set(re.findall(r"[\w/.-]+\.md", json.dumps(configuration["nav"])))
    pages = {path.relative_to(PAGES).as_posix() for path in PAGES.rglob("*.md")}
    if left_out := sorted(page for page in pages - listed if not page.startswith("source/")):
        sys.exit(f"not in the navigation of docs/generator/site.yml: {', '.join(left_out)}")
    (SITE / "mkdocs.yml").write_text(yaml.safe_dump(configuration, sort_keys=False))


def expanded(entry: Any) -> Any:
    """``entry`` of the navigation with patterns such as ``decisions/*.md`` replaced by the pages they match."""
    if isinstance(entry, dict):
        return {title: expanded(below) for title, below in entry.items()}
    if isinstance(entry, list):
        return [page for item in entry for page in (matching(item) if isinstance(item, str) else [expanded(item)])]
    return entry


def matching(pattern: str) -> list[str]:
    return sorted(path.relative_to(PAGES).as_posix() for path in PAGES.glob(pattern)) or [pattern]


if __name__ == "__main__":
    main()
