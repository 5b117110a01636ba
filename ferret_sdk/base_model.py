"""The base model as it comes from a server: what its files may say before anything loads them.

A model folder can name other files: adapters name a base model, an index names shards, a tokenizer its vocabulary, a
configuration code of the hub. Of a server's folder, only its own files are read, and nothing is fetched for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from ferret_core.protocol.errors import FerretError
from ferret_sdk.places import checkpoint_file
from ferret_sdk.schemas import Artifact

MAX_JSON_BYTES = 64 << 20
"""The longest JSON file; the one of a tokenizer of 256,000 words has 35 MB."""
ADAPTERS = "adapter_"
INDEX = ".index.json"


def require_plain(files: list[Artifact]) -> None:
    """Refuses, before they are downloaded, files that are no base model's: ``server.unexpected``."""
    for file in files:
        if file.name.startswith(ADAPTERS):
            raise _refused("artifact.name", file.name, "adapters load another model: a base model has none")
        if file.name.endswith(".json") and file.size > MAX_JSON_BYTES:
            raise _refused("artifact.size", file.size, f"is too long for {file.name[:100]}")


def require_own_files(folder: Path) -> None:
    """Refuses a downloaded base model whose JSON leads to files outside ``folder``: ``server.unexpected``."""
    for index in folder.glob(f"*{INDEX}"):
        for field, value in _members(index):
            if field.startswith("weight_map."):
                checkpoint_file(folder, str(value))
    for field, value in _members(folder / "tokenizer_config.json"):
        if field.endswith("_file") and value:
            raise _refused(f"tokenizer_config.json: {field}", value, "names a file elsewhere")
    for field, value in _members(folder / "config.json"):
        if field.endswith("_implementation") and "/" in str(value):
            raise _refused(f"config.json: {field}", value, "names code to be fetched")


def _members(path: Path) -> Iterator[tuple[str, Any]]:
    """Every member of the file's object and of the objects in it, by its dotted name. Lists are left out."""
    try:
        waiting: list[tuple[str, Any]] = [("", json.loads(path.read_bytes()) if path.exists() else {})]
    except (ValueError, RecursionError) as error:
        raise _refused("artifact.name", path.name, "is not JSON") from error
    while waiting:
        at, found = waiting.pop()
        if isinstance(found, dict):
            for name, below in cast(dict[str, Any], found).items():
                yield f"{at}{name}", below
                waiting.append((f"{at}{name}.", below))


def _refused(field: str, value: Any, message: str) -> FerretError:
    shown = value[:200] if isinstance(value, str) else value if isinstance(value, int) else repr(value)[:200]
    return FerretError.of_field("server.unexpected", field, shown, f"{message}; join only servers you trust")
