"""``make check``: a check that no source of ours can run code that arrived as data.

A pickle, a YAML tag, a model's Python file: their author decides what the reader executes. Models and contributions
come from others, so nothing that reads such formats may be imported or called. The sources are parsed, not run; names
are followed through imports and their aliases. Standard library only.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCES = (
    "ferret_core",
    "ferret_runtime",
    "ferret_db",
    "migrations",
    "ferret_sdk",
    "ferret_cli",
    "api",
    "worker",
    "bench",
    "packaging",
    "scripts",
    "docs/generator",
    "examples",
)

MODULES = frozenset({"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"})
"""Modules that run code, or rebuild objects of any class, from their input."""
NAMES = {
    "torch.load": "read safetensors",
    "torch.save": "write safetensors",
    "torch.jit.load": "read safetensors",
    "torch.hub.load": "load models by ferret_core.models",
    "yaml.load": "use yaml.safe_load",
    "yaml.load_all": "use yaml.safe_load_all",
    "yaml.full_load": "use yaml.safe_load",
    "yaml.unsafe_load": "use yaml.safe_load",
    "pandas.read_pickle": "use another format",
    "torch.distributed.checkpoint": "use ferret_core.models",
    "torch.distributed.rpc": "use ferret_core.distributed",
    "multiprocessing.connection": "use ferret_core.replica.mapped.process_pool",
    "multiprocessing.managers": "use ferret_core.replica.mapped.process_pool",
    "eval": "use ast.literal_eval, or a table of functions",
    "exec": "use a function",
    "builtins.eval": "use ast.literal_eval, or a table of functions",
    "builtins.exec": "use a function",
}
"""Names that must not be called or passed on, with the alternative."""
OBJECTS = re.compile(r"(all_gather|broadcast|gather|recv|scatter|send)_object(_\w+)?")
"""The functions of ``torch.distributed`` that unpickle data from other processes, by whatever name they are
imported.
"""
OPTIONS = {"trust_remote_code": False, "allow_pickle": False, "weights_only": True}
"""Arguments and options that must have this literal value."""
IMPORTERS = frozenset({"importlib.import_module", "__import__", "builtins.__import__"})


class Finding(NamedTuple):
    """A place in a source, and the violated rule."""

    path: Path
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}"


def main() -> int:
    """Returns the exit code: 1 if anything was found."""
    findings = [finding for path in sources() for finding in findings_in(path)]
    for finding in findings:
        sys.stderr.write(f"{finding}\n")
    return int(bool(findings))


def sources() -> list[Path]:
    """Returns every Python file of ours except the tests, which attack with forbidden code."""
    found = {path.resolve() for name in SOURCES for path in (ROOT / name).rglob("*.py")}
    return sorted(found)


def findings_in(path: Path) -> list[Finding]:
    """Returns the file's violations by line."""
    tree = ast.parse(path.read_bytes(), str(path))
    shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    aliases = dict(_aliases(tree))
    found = [Finding(shown, line, reason) for node in ast.walk(tree) for line, reason in _wrong(node, aliases)]
    return sorted(set(found), key=lambda finding: finding.line)


def _aliases(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yields names in the file with the dotted names that they were imported as."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                first = name.name.partition(".")[0]
                yield (name.asname, name.name) if name.asname else (first, first)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for name in node.names:
                yield name.asname or name.name, f"{node.module}.{name.name}"


def _wrong(node: ast.AST, aliases: dict[str, str]) -> Iterator[tuple[int, str]]:
    match node:
        case ast.Import(names=names):
            yield from _imported(node.lineno, [name.name for name in names])
        case ast.ImportFrom(module=str(module), names=names, level=0):
            yield from _imported(node.lineno, [f"{module}.{name.name}" for name in names])
        case ast.Call(func=called, args=[ast.Constant(value=str(module)), *_]):
            if _dotted(called, aliases) in IMPORTERS:
                yield from _imported(node.lineno, [module])
        case ast.Name(id=name):
            yield from _named(node.lineno, aliases.get(name, name))
        case ast.Attribute(attr=name):
            yield from _named(node.lineno, _dotted(node, aliases) or f"….{name}")
        case ast.keyword(arg=str(name), value=value):
            yield from _option(value.lineno, name, value)
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield from _option(value.lineno, key.value, value)
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                match target:
                    case ast.Subscript(slice=ast.Constant(value=str(name))) | ast.Attribute(attr=name):
                        yield from _option(value.lineno, name, value)
                    case _:
                        pass
        case _:
            pass


def _imported(line: int, modules: Iterable[str]) -> Iterator[tuple[int, str]]:
    for module in modules:
        if module.partition(".")[0] in MODULES:
            yield line, f"{module} runs what it reads: use JSON, or safetensors for arrays"
        parts = module.split(".")
        for length in range(1, len(parts) + 1):
            yield from _named(line, ".".join(parts[:length]))


def _named(line: int, name: str) -> Iterator[tuple[int, str]]:
    if name in NAMES:
        yield line, f"{name} runs what it reads: {NAMES[name]}"
    elif OBJECTS.fullmatch(name.rpartition(".")[2]):
        yield line, f"{name} runs what it reads: use ferret_core.distributed.process_group"


def _option(line: int, name: str, value: ast.expr) -> Iterator[tuple[int, str]]:
    if name in OPTIONS and not (isinstance(value, ast.Constant) and value.value is OPTIONS[name]):
        yield line, f"{name} must be {OPTIONS[name]}, written out"


def _dotted(node: ast.expr, aliases: dict[str, str]) -> str | None:
    """Returns ``numpy.load`` for ``np.load``, or None if the expression is not a name, such as a call's result."""
    match node:
        case ast.Name(id=name):
            return aliases.get(name, name)
        case ast.Attribute(value=value, attr=attribute):
            owner = _dotted(value, aliases)
            return f"{owner}.{attribute}" if owner else None
        case _:
            return None


if __name__ == "__main__":
    sys.exit(main())
