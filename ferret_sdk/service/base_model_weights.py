"""The base model's weights from the site's source: a folder on its disk, or the hub.

Weights are the large part. All other files, which define the model's computation and its tokens, still come from the
server. The combined model counts only if it has the experiment's digest, which covers every file.

The server's files are checked before anything loads them. A model folder can name other files: adapters name a base
model, an index names shards, a tokenizer its vocabulary, a configuration code of the hub. Only the server folder's own
files are read, and nothing is fetched for it.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from ferret_core.models.definition import BASES, NAMES, UNREAD
from ferret_core.protocol import bounded_json
from ferret_core.protocol.digest import digest_file
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.experiments import Artifact
from ferret_core.protocol.spec import ModelSpec
from ferret_sdk.http.safe_paths import checkpoint_file, require_name
from ferret_sdk.http.transport import Traffic

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
log = logging.getLogger(__name__)

HUB = "hub"
WHOLE, SHARDED = f"model{WEIGHTS}", f"model{WEIGHTS}{INDEX}"


def holds_weights(name: str) -> bool:
    """Returns True if the file holds a model's weights or their index."""
    return name.endswith((WEIGHTS, f"{WEIGHTS}{INDEX}"))


def require_plain(files: list[Artifact]) -> None:
    """Refuses files that do not belong to a base model, before they are downloaded: ``server.unexpected``."""
    for file in files:
        if file.name.startswith(ADAPTERS):
            raise _unsafe("artifact.name", file.name, "adapters load another model: a base model has none")
        if not (file.name in {*NAMES, BASES, MANIFEST} or holds_weights(file.name)):
            raise _unsafe("artifact.name", file.name, "is not a file that the digest of a base model covers")
        most = MAX_TOKENIZER_BYTES if file.name in TOKENIZERS else MAX_JSON_BYTES
        if file.name.endswith(".json") and file.size > most:
            raise _unsafe("artifact.size", file.size, f"is too long for {file.name[:100]}")


def require_own_files(folder: Path) -> None:
    """Raises ``server.unexpected`` for JSON that refers to files outside ``folder`` or takes too much memory."""
    for path in folder.glob("*.json"):
        _require_small(path)
    for index in folder.glob(f"*{INDEX}"):
        for field, value in _members(index):
            if field.startswith("weight_map."):
                checkpoint_file(folder, str(value))
    for field, value in _members(folder / "tokenizer_config.json"):
        if field.endswith("_file") and value and field != UNREAD:
            raise _unsafe(f"tokenizer_config.json: {field}", value, "names a file elsewhere")
    for field, value in _members(folder / "config.json"):
        if field.endswith("_implementation") and "/" in str(value):
            raise _unsafe(f"config.json: {field}", value, "names code to be fetched")


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
        raise _unsafe("artifact.name", path.name, "has too many values")


def read_json(path: Path) -> Any:
    """Returns the file's JSON value. Raises ``server.unexpected`` if it is missing, too large or too deep."""
    try:
        with path.open("rb") as file:
            return bounded_json.parse(file.read(MAX_JSON_BYTES + 1), MAX_JSON_BYTES)
    except ValueError as error:
        raise _unsafe("artifact.name", path.name, "is not JSON, or too large") from error


def _unsafe(field: str, value: Any, message: str) -> FerretError:
    shown = value[:200] if isinstance(value, str) else value if isinstance(value, int) else repr(value)[:200]
    return FerretError.of_field("server.unexpected", field, shown, f"{message}; join only servers you trust")


def require_weights(folder: Path) -> None:
    """Refuses a folder without weights: ``model.invalid``."""
    if not any(folder.glob(f"*{WEIGHTS}")):
        raise _refused(folder, f"holds no {WEIGHTS} weights; name the folder with the weights")


def of_site(base: Path | str, model: ModelSpec, traffic: Traffic) -> Path | None:
    """Returns the folder of weights that ``base`` means, or None if the hub lacks them or cannot be reached.

    ``base`` is a folder, or :data:`HUB` for the specification's model on the hub, which must name a revision. Downloads
    from there stay in the hub's cache, and are counted in ``traffic``.
    """
    if base != HUB:
        require_weights(Path(base))
        return Path(base)
    if model.revision is None:
        log.warning("the experiment names no model and revision on the hub: the weights come from the server")
        return None
    try:
        return _from_hub(model.source, model.revision, traffic)
    except Exception as error:  # the hub's library does not wrap the exceptions of its dependencies
        log.warning("the hub gives no %s (%s): the weights come from the server", model.source, type(error).__name__)
        return None


def require_announced(folder: Path, files: list[Artifact]) -> None:
    """Refuses a Ferret checkpoint with other weights than the server's.

    ``model.invalid`` names the file and both digests. Other folders may pack the weights in another way; their model's
    digest decides.
    """
    if not (folder / MANIFEST).is_file():
        return
    for file in files:
        if holds_weights(file.name):
            require_name(file.name)
            own = folder / file.name
            found = digest_file(own) if own.is_file() else "no file"
            if found != file.digest:
                raise _refused(folder, f"{file.name} has digest {found}, the base model's has {file.digest}")


@contextmanager
def joined(own: Path, server: Path) -> Generator[Path]:
    """Creates a folder with the weights in ``own`` and all other files in ``server``, for the ``with`` block.

    Files are linked where the disk allows it, otherwise copied.
    """
    with TemporaryDirectory(prefix=".joined-", dir=server.parent, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for path in server.iterdir():
            if path.is_file() and not holds_weights(path.name):
                _link(path, folder / path.name)
        for path in own.iterdir():
            if holds_weights(path.name):
                _link(path.resolve(), folder / path.name)
        yield folder


def other_model(folder: Path, found: str, wanted: str) -> FerretError:
    """Returns the error for weights of another model, with each file's digest and both models' digests."""
    files = ", ".join(f"{path.name} ({digest_file(path)})" for path in sorted(folder.glob(f"*{WEIGHTS}")))
    return _refused(folder, f"{files} make a model with digest {found}, the base model has {wanted}")


def _from_hub(source: str, revision: str, traffic: Traffic) -> Path:
    from huggingface_hub import errors

    with suppress(errors.EntryNotFoundError):
        return _fetched(source, revision, WHOLE, traffic).parent
    index = _fetched(source, revision, SHARDED, traffic)
    names: set[str] = set(read_json(index)["weight_map"].values())
    for name in sorted(names):
        require_name(name)
        _fetched(source, revision, name, traffic)
    return index.parent


def _fetched(source: str, revision: str, name: str, traffic: Traffic) -> Path:
    from huggingface_hub import hf_hub_download, try_to_load_from_cache

    known = try_to_load_from_cache(source, name, revision=revision)
    path = Path(hf_hub_download(source, name, revision=revision))
    if not isinstance(known, str):
        traffic.add(0, path.stat().st_size)
    return path


def _link(source: Path, target: Path) -> None:
    for make in (os.link, os.symlink, shutil.copyfile):  # not across disks; not for everybody on Windows
        with suppress(OSError):
            make(source, target)
            return
    raise FerretError("storage.full", f"{source} can neither be linked nor copied to {target.parent}")


def _refused(folder: Path, message: str) -> FerretError:
    return FerretError.of_field("model.invalid", "base", str(folder), message)
