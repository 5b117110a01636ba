"""The files that define a model, apart from its weights: configuration, tokenizer, chat template, generation settings.

Each is read once and is part of the model's digest. The loading library sees a copy of exactly these files: no other
file of the folder or repository has an effect, nor does the model's name.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from ferret_core.models.untrusted_folder import CONFIG, MAX_TOKENIZER_BYTES, ModelFolderError
from ferret_core.protocol.digest import digest_bytes, digest_json
from ferret_core.system import untrusted_files

TOKENIZER_CONFIG, GENERATION_CONFIG = "tokenizer_config.json", "generation_config.json"
NAMES = frozenset(
    {
        CONFIG,
        GENERATION_CONFIG,
        TOKENIZER_CONFIG,
        "tokenizer.json",
        "special_tokens_map.json",
        "added_tokens.json",
        "chat_template.jinja",
        "vocab.json",
        "merges.txt",
        "vocab.txt",
        "emoji.json",
        "tokenizer.model",
        "spiece.model",
        "sentencepiece.model",
        "sentencepiece.bpe.model",
        "tiktoken.model",
        "tekken.json",
    }
)
"""Files that transformers reads for a causal language model, apart from its weights."""
BASES = "bases.ferret"
"""File of a stored base model with the bases of an algorithm that takes them from public text. It is never read from a
model's source, and the model's own digest does not cover it."""
UNREAD = "special_tokens_map_file"
"""A member that is present in many published tokenizers and never read."""

Files = Mapping[str, bytes]
"""File contents by name."""


def read(folder: Path) -> dict[str, bytes]:
    """Reads the files of :data:`NAMES` in ``folder``; raises ``ModelFolderError`` for a forbidden one."""
    return {name: content(folder / name) for name in sorted(NAMES) if (folder / name).exists()}


def content(path: Path) -> bytes:
    """Returns the bytes of the file at ``path``; raises ``ModelFolderError`` for a forbidden one."""
    try:
        with untrusted_files.open_regular(untrusted_files.allowed(path), MAX_TOKENIZER_BYTES) as file:
            found = file.read(MAX_TOKENIZER_BYTES + 1)
    except untrusted_files.UntrustedFileError as error:
        raise ModelFolderError(f"{path.name} {error}") from error
    if len(found) > MAX_TOKENIZER_BYTES:
        raise ModelFolderError(f"{path.name} is larger than {MAX_TOKENIZER_BYTES >> 20} MiB")
    return found


def write(files: Files, folder: Path) -> None:
    """Writes ``files`` into ``folder``, byte for byte, and removes all other :data:`NAMES`."""
    for name in NAMES - set(files):
        (folder / name).unlink(missing_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)


@contextmanager
def unpacked(files: Files) -> Generator[Path]:
    """Yields a folder that contains exactly ``files``, and removes it after the block."""
    with TemporaryDirectory(prefix="ferret-model-") as name:
        write(files, Path(name))
        yield Path(name)


def digest(files: Files) -> str:
    """Returns 64 hexadecimal digits that change with any name or byte; empty for a model not read from files."""
    return digest_json({name: digest_bytes(data) for name, data in files.items()}) if files else ""


def require_own(files: Files) -> None:
    """Raises ``ModelFolderError`` if the tokenizer's settings name a file elsewhere: participants would reject it."""
    try:
        settings: Any = json.loads(files.get(TOKENIZER_CONFIG, b"{}"))
    except (ValueError, RecursionError) as error:
        raise ModelFolderError(f"{TOKENIZER_CONFIG} is not JSON, or nested too deeply") from error
    named = cast(dict[str, Any], settings) if isinstance(settings, dict) else {}
    if found := [name for name, value in named.items() if name.endswith("_file") and value and name != UNREAD]:
        raise ModelFolderError(f"{TOKENIZER_CONFIG}: field {found[0]!r} names a file elsewhere: remove that field")
