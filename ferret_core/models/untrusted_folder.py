"""Checks of a model folder before anything is loaded from it: it is untrusted.

The loading library never runs code of a folder here, but it trusts the numbers in it: the number of layers, the size of
an array, the length of a header. The first checks cost little: the files, the depth and size of their JSON, and the
agreement of the weights' headers with their files. No error contains a file's contents.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

from ferret_core.protocol import bounded_json
from ferret_core.system import untrusted_files

MAX_ENTRIES = 10_000
MAX_JSON_BYTES = 16 * 2**20
MAX_TOKENIZER_BYTES = 64 * 2**20
MAX_MARKS = 8_000_000
"""Maximum marks in a tokenizer's JSON; one with 256,000 words has five million."""
MAX_WEIGHTS_BYTES = 2**42
MAX_DEPTH = 32
MAX_NUMBER = 2**40
LEAST_PARTS = 512
"""This many layers or experts are allowed for any weights: empty ones cost little."""
READ = {".json", ".safetensors", ".model", ".txt", ".jinja", ".tiktoken"}
LARGE = {"tokenizer.json", "vocab.json", "merges.txt", "tokenizer.model", "vocab.txt"}
WEIGHTS, INDEX, CONFIG = ".safetensors", "model.safetensors.index.json", "config.json"
ITEM_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
FLOATING = {"F64", "F32", "F16", "BF16"}


class ModelFolderError(Exception):
    """The reason for rejecting a folder, without contents of its files."""


class Weights(NamedTuple):
    """Totals of the headers of a folder's weights: number of arrays, and of floating-point numbers."""

    arrays: int
    elements: int


def inspect_folder(folder: Path) -> Weights:
    """Checks ``folder`` and returns the totals of its weights; raises ``ModelFolderError`` or ``UntrustedFileError``
    if it must not be loaded."""
    paths = list(_entries(folder))
    documents = {path.name: _document(path) for path in paths if path.suffix == ".json" and path.name not in LARGE}
    weights = [path for path in paths if path.suffix == WEIGHTS]
    if CONFIG not in documents:
        raise ModelFolderError(f"holds no {CONFIG}: not a Hugging Face model folder")
    if not weights:
        raise ModelFolderError(f"holds no {WEIGHTS} weights")
    if "adapter_config.json" in documents:
        raise ModelFolderError("holds an adapter, not a model: use the model that it was made for")
    if INDEX in documents:
        _check_index(documents[INDEX], {path.name for path in weights})
    found = [_header(path) for path in weights]
    whole = Weights(sum(part.arrays for part in found), sum(part.elements for part in found))
    _check_config(documents[CONFIG], whole)
    return whole


def _entries(folder: Path) -> Iterator[Path]:
    """Yields the files that may be read, each checked."""
    for number, path in enumerate(folder.iterdir()):
        if number >= MAX_ENTRIES:
            raise ModelFolderError(f"holds more than {MAX_ENTRIES} files")
        if path.suffix not in READ:
            continue
        most = MAX_WEIGHTS_BYTES if path.suffix == WEIGHTS else MAX_TOKENIZER_BYTES
        try:
            with untrusted_files.open_regular(untrusted_files.allowed(path), most) as file:
                if path.suffix == ".json" and path.name in LARGE and bounded_json.marks(file.read()) > MAX_MARKS:
                    raise ModelFolderError(f"{path.name} has too many values")
        except untrusted_files.UntrustedFileError as error:
            raise ModelFolderError(f"{path.name} {error}") from error
        yield path


def _document(path: Path) -> dict[str, Any]:
    with untrusted_files.open_regular(path, MAX_TOKENIZER_BYTES) as file:
        raw = file.read(MAX_JSON_BYTES + 1)
    if len(raw) > MAX_JSON_BYTES:
        raise ModelFolderError(f"{path.name} is larger than {MAX_JSON_BYTES >> 20} MiB")
    try:
        value: object = bounded_json.parse(raw, MAX_JSON_BYTES)
    except ValueError as error:
        raise ModelFolderError(f"{path.name} is not JSON, is nested too deeply, or has too many values") from error
    if not isinstance(value, dict):
        raise ModelFolderError(f"{path.name} is not a JSON object")
    if any(depth > MAX_DEPTH for _, _, depth in _walk(cast(dict[str, Any], value))):
        raise ModelFolderError(f"{path.name} is nested deeper than {MAX_DEPTH} levels")
    return cast(dict[str, Any], value)


def _walk(document: dict[str, Any]) -> Iterator[tuple[str, Any, int]]:
    """Yields every value with its name and depth."""
    waiting: list[tuple[str, Any, int]] = [("", document, 0)]
    while waiting:
        name, value, depth = waiting.pop()
        yield name, value, depth
        if depth > MAX_DEPTH:
            continue
        if isinstance(value, dict):
            waiting += [(str(key), item, depth + 1) for key, item in cast(dict[Any, Any], value).items()]
        elif isinstance(value, list):
            waiting += [(name, item, depth + 1) for item in cast(list[Any], value)]


def _check_config(config: dict[str, Any], weights: Weights) -> None:
    if config.get("quantization_config"):
        raise ModelFolderError(f"{CONFIG}: quantised weights cannot be tuned: use the original model")
    most = max(weights.arrays, LEAST_PARTS)
    for name, value, _ in _walk(config):
        if "attn_implementation" in name and "/" in str(value):
            raise ModelFolderError(f"{CONFIG}: field {name!r} names foreign code")
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if not math.isfinite(value) or abs(value) > MAX_NUMBER:
            raise ModelFolderError(f"{CONFIG}: a number is not finite, or beyond {MAX_NUMBER}")
        if value > most and "layer" in name and not name.endswith(("_eps", "_epsilon")):
            raise ModelFolderError(f"{CONFIG} describes more layers than the weights have arrays ({weights.arrays})")
        if value > most and "expert" in name and not name.endswith(("_size", "_dim")):
            raise ModelFolderError(f"{CONFIG} describes more experts than the weights have arrays ({weights.arrays})")


def _check_index(index: dict[str, Any], there: set[str]) -> None:
    shards: object = index.get("weight_map")
    if not isinstance(shards, dict) or not shards:
        raise ModelFolderError(f"{INDEX} has no weight_map")
    names = list(cast(dict[str, Any], shards).values())
    if missing := sum(not isinstance(name, str) or name not in there for name in names):
        raise ModelFolderError(f"{INDEX} names {missing} arrays in files that are not in the folder")


def _header(path: Path) -> Weights:
    """Returns the totals of the file's header, which must match the file."""
    with untrusted_files.open_regular(path, MAX_WEIGHTS_BYTES) as file:
        size = path.stat().st_size
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(MAX_JSON_BYTES, size - 8):
            raise ModelFolderError(f"{path.name} has no header of a safetensors file, or is cut short")
        raw = file.read(length)
    try:
        header: object = bounded_json.parse(raw, MAX_JSON_BYTES)
    except ValueError as error:
        raise ModelFolderError(f"{path.name} has a header that is not JSON") from error
    if not isinstance(header, dict):
        raise ModelFolderError(f"{path.name} has a header that is not a JSON object")
    arrays = {name: value for name, value in cast(dict[str, Any], header).items() if name != "__metadata__"}
    return Weights(len(arrays), sum(_elements(value, size - 8 - length, path.name) for value in arrays.values()))


def _elements(array: Any, room: int, file: str) -> int:
    """Returns the array's count of floating-point numbers; raises ``ModelFolderError`` unless they are in the file."""
    try:
        dtype, shape, (begin, end) = array["dtype"], array["shape"], array["data_offsets"]
        whole = all(type(number) is int and 0 <= number <= MAX_NUMBER for number in (*shape, begin, end))
        count = math.prod(shape) if whole else -1
        fits = whole and end <= room and end - begin == count * ITEM_BYTES[dtype]
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFolderError(f"{file}: its header describes an invalid array") from error
    if not fits:
        raise ModelFolderError(f"{file}: its header describes an array that the file does not hold")
    return count if dtype in FLOATING else 0
