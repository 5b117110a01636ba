"""The base model's weights from the site's source: a folder on its disk, or the hub.

Weights are the large part. All other files, which define the model's computation and its tokens, still come from the
server. The combined model counts only if it has the experiment's digest, which covers every file.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from ferret_core.protocol.digest import digest_file
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.artifacts import Artifact
from ferret_core.protocol.spec import ModelSpec
from ferret_sdk.http.safe_paths import require_name
from ferret_sdk.http.transport import Traffic
from ferret_sdk.service.base_model_checks import INDEX, MANIFEST, WEIGHTS, holds_weights, read_json

log = logging.getLogger(__name__)

HUB = "hub"
WHOLE, SHARDED = f"model{WEIGHTS}", f"model{WEIGHTS}{INDEX}"


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
