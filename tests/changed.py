"""``pytest --changed``: only the tests that files can break which differ from a commit, HEAD if none is named.

A test file depends on the modules that it imports, directly or not, on those that its ``conftest.py`` files import
directly, and on the algorithms and datasets that it names. A test that starts processes depends on every module of the
service. A file that is no Python module can break every test, unless ``READERS`` says which.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import NamedTuple

import grimp
import pytest

from tests import tiers

ROOT = Path(__file__).parents[1]
ROOTS = {
    ".": ("ferret_core", "ferret_db", "ferret_sdk", "ferret_cli"),
    "api": ("ferret_api",),
    "worker": ("ferret_worker",),
}
SERVICE = tuple(package for packages in ROOTS.values() for package in packages)
PACKAGES = (*SERVICE, "ferret_bench")
BY_NAME = ("ferret_core.algorithms", "ferret_core.datasets")
"""Their modules are found by the names that specifications give."""
READERS = {
    "*.md": ("tests/test_docs.py", "tests/e2e/test_tutorials.py"),
    "web/*": ("tests/e2e/*",),
    "api/ferret_api/static/*": ("tests/e2e/*", "tests/api/*"),
}
"""Files by their pattern, and the tests that read them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--changed", nargs="?", const="HEAD", help="only what differs from this commit can break (HEAD)")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if (commit := config.getoption("--changed")) is None:
        return
    changes = Changes(changed_files(str(commit)))
    kept = [item for item in items if changes.can_break(item.path, tiers.starts_processes(item))]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


def changed_files(commit: str) -> set[str]:
    """Paths within the repository: of what git tracks, and of new files that it does not ignore."""

    def lines(*arguments: str) -> list[str]:
        return subprocess.check_output(["git", *arguments], cwd=ROOT, text=True).splitlines()

    return {*lines("diff", "--name-only", commit), *lines("ls-files", "--others", "--exclude-standard")}


class Changes:
    """Files that changed, and the modules whose behaviour may have changed with them."""

    def __init__(self, files: Iterable[str]) -> None:
        self.files = set(files)
        graph = _graph()
        self.changed = {module for path in self.files if (module := module_of(path)) is not None}
        downstream = (graph.find_downstream_modules(module) for module in self.changed & graph.modules)
        self.modules = self.changed.union(*downstream)
        self.named = {module.rpartition(".")[2] for module in self.changed if module.startswith(BY_NAME)}
        self.readers = {
            reader
            for path in self.files
            if module_of(path) is None
            for reader in next((readers for files, readers in READERS.items() if fnmatch(path, files)), ("*",))
        }

    def can_break(self, test: Path, starts_processes: bool) -> bool:
        """Whether a test of the file ``test`` can behave in another way than before."""
        path = test.relative_to(ROOT).as_posix()
        if any(fnmatch(path, reader) for reader in self.readers):
            return True
        if starts_processes and any(module.startswith(SERVICE) for module in self.modules):
            return True
        sources, fixtures = reached(test), frozenset().union(*map(reached, _conftests(test)))
        files = {source.relative_to(ROOT).as_posix() for source in sources | fixtures}
        return bool(
            self.files & files
            or self.modules & _modules(sources)
            or self.changed & _modules(fixtures)
            or self.named & {text for source in sources | fixtures for text in _parsed(source).texts}
        )


def module_of(path: str) -> str | None:
    """The module in the file ``path`` of the repository; of a file of the tests its own name. None if it is neither."""
    parts = Path(path).with_suffix("").parts
    if not path.endswith(".py") or parts[0] not in {"tests", "scripts", "api", "worker", "bench", *SERVICE}:
        return None
    if parts[0] in {"api", "worker", "bench"}:
        parts = parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def reached(source: Path) -> frozenset[Path]:
    """A file of the tests, and those that it imports, directly or not."""
    waiting, found = [source], set[Path]()
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            modules = (name for name in _parsed(path).modules if name.startswith("tests."))
            waiting += [file for name in modules if (file := ROOT / f"{name.replace('.', '/')}.py").exists()]
    return frozenset(found)


def _conftests(test: Path) -> list[Path]:
    folders = [folder for folder in test.parents if folder.is_relative_to(ROOT / "tests")]
    return [path for folder in folders if (path := folder / "conftest.py").exists()]


class Parsed(NamedTuple):
    """The modules that a file imports, and its texts."""

    modules: frozenset[str]
    texts: frozenset[str]


def _modules(sources: Iterable[Path]) -> set[str]:
    return {module for source in sources for module in _parsed(source).modules}


@cache
def _parsed(path: Path) -> Parsed:
    tree = ast.parse(path.read_text())
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return Parsed(frozenset(_imported(tree)), frozenset(texts))


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def _graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True)
