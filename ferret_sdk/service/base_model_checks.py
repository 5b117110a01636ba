"""Checks of the base model's files from a server, before anything loads them.

A model folder can name other files: adapters name a base model, an index names shards, a tokenizer its vocabulary, a
configuration code of the hub. Only the server folder's own files are read, and nothing is fetched for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from ferret_core.models.definition import NAMES, UNREAD
from ferret_core.protocol import bounded_json
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.artifacts import Artifact
from ferret_sdk.http.safe_paths import checkpoint_file

MAX_JSON_BYTES = 16 << 20
"""Limit of a JSON file. The index of a model with 90,000 arrays has 9 MB."""
MAX_TOKENIZER_BYTES = 64 << 20
"""Limit of a tokenizer's file. One with 256,000 words has 35 MB."""
TOKENIZERS = {"tokenizer.json", "vocab.json"}
MAX_MARKS = 8_000_000
"""Limit of marks in such a file. One with 256,000 words has five million."""
ADAPTERS = "adapter_"
INDEX = ".index.json"
WEIGHTS = ".safetensors"
MANIFEST = "ferret.json"


def holds_weights(name: str) -> bool:
    """Returns True if the file holds a model's weights or their index."""
    return name.endswith((WEIGHTS, f"{WEIGHTS}{INDEX}"))


def require_plain(files: list[Artifact]) -> None:
    """Refuses files that do not belong to a base model, before they are downloaded: ``server.unexpected``."""
    for file in files:
        if file.name.startswith(ADAPTERS):
            raise _refused("artifact.name", file.name, "adapters load another model: a base model has none")
        if not (file.name in NAMES or file.name == MANIFEST or holds_weights(file.name)):
            raise _refused("artifact.name", file.name, "is not a file that the digest of a base model covers")
        most = MAX_TOKENIZER_BYTES if file.name in TOKENIZERS else MAX_JSON_BYTES
        if file.name.endswith(".json") and file.size > most:
            raise _refused("artifact.size", file.size, f"is too long for {file.name[:100]}")


def require_own_files(folder: Path) -> None:
    """Raises ``server.unexpected`` for a downloaded base model with JSON that refers to files outside ``folder``, or
    that would take too much memory.
    """
    for path in folder.glob("*.json"):
        _require_small(path)
    for index in folder.glob(f"*{INDEX}"):
        for field, value in _members(index):
            if field.startswith("weight_map."):
                checkpoint_file(folder, str(value))
    for field, value in _members(folder / "tokenizer_config.json"):
        if field.endswith("_file") and value and field != UNREAD:
            raise _refused(f"tokenizer_config.json: {field}", value, "names a file elsewhere")
    for field, value in _members(folder / "config.json"):
        if field.endswith("_implementation") and "/" in str(value):
            raise _refused(f"config.json: {field}", value, "names code to be fetched")


def _members(path: Path) -> Iterator[tuple[str, Any]]:
    """Yields every member of the file's object and of nested objects, by dotted name, without lists."""
    waiting: list[tuple[str, Any]] = [("", read_json(path) if path.exists() else {})]
    while waiting:
        at, found = waiting.pop()
        if isinstance(found, dict):
            for name, below in cast(dict[str, Any], found).items():
                yield f"{at}{name}", below
                waiting.append((f"{at}{name}.", below))


def _require_small(path: Path) -> None:
    if path.name not in TOKENIZERS:
        read_json(path)
    elif bounded_json.marks(path.read_bytes()) > MAX_MARKS:
        raise _refused("artifact.name", path.name, "has too many values")


def read_json(path: Path) -> Any:
    """Returns the file's JSON value. Raises ``server.unexpected`` if it is missing, too large or too deep."""
    try:
        with path.open("rb") as file:
            return bounded_json.parse(file.read(MAX_JSON_BYTES + 1), MAX_JSON_BYTES)
    except ValueError as error:
        raise _refused("artifact.name", path.name, "is not JSON, or too large") from error


def _refused(field: str, value: Any, message: str) -> FerretError:
    shown = value[:200] if isinstance(value, str) else value if isinstance(value, int) else repr(value)[:200]
    return FerretError.of_field("server.unexpected", field, shown, f"{message}; join only servers you trust")
