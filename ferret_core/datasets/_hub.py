"""Files of a dataset on the Hugging Face hub, or on the mirror in ``HF_ENDPOINT``.

Each is downloaded once into the hub's own cache. All functions raise ``dataset.invalid`` about ``dataset.hub``, and
``dependency.missing`` without the packages of the extra ``hub``.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ferret_core.datasets._record import Record, record_of
from ferret_core.protocol.errors import FerretError
from ferret_core.system.untrusted_files import MAX_FILE_BYTES, MAX_LINES

OPTION = "dataset.hub"


def download(repository: str, revision: str | None, filename: str) -> str:
    """Downloads the repository's file and returns its local path."""
    with _from_hub(repository, filename):
        from huggingface_hub import hf_hub_download

        return hf_hub_download(repository, filename, repo_type="dataset", revision=revision)


def download_all(repository: str, revision: str | None, pattern: str) -> list[str]:
    """Downloads the repository's files that match ``pattern``, at least one, and returns their local paths, by name."""
    with _from_hub(repository, pattern):
        from huggingface_hub import snapshot_download

        folder = snapshot_download(repository, repo_type="dataset", revision=revision, allow_patterns=pattern)
    if not (paths := sorted(Path(folder).glob(pattern))):
        raise _invalid(repository, f"has no {pattern}: name another repository or revision, or give local files")
    return [str(path) for path in paths]


def read_parquet(repository: str, revision: str | None, filename: str) -> Iterator[Record]:
    """Yields the rows of the repository's Parquet file."""
    with _from_hub(repository, filename):
        import pyarrow as arrow
        from pyarrow import parquet
    path = download(repository, revision, filename)
    try:
        with parquet.ParquetFile(path) as file:
            _check_size(repository, filename, file.metadata)
            rows = file.read().to_pylist()
    except arrow.ArrowException as error:
        raise _invalid(repository, f"{path} is not a complete Parquet file: delete it and try again") from error
    place = f"{repository}/{filename}"
    return (record_of(row, OPTION, place, f"row {number}") for number, row in enumerate(rows, start=1))


def _check_size(repository: str, filename: str, found: Any) -> None:
    """Raises an error if the file's metadata exceed the limits; ``found``: pyarrow's FileMetaData."""
    unpacked = sum(found.row_group(group).total_byte_size for group in range(found.num_row_groups))
    if found.num_rows > MAX_LINES or unpacked > MAX_FILE_BYTES:
        raise _invalid(repository, f"{filename} has {found.num_rows} rows of {unpacked} bytes: more than are read")


@contextmanager
def _from_hub(repository: str, wanted: str) -> Generator[None]:
    """Converts exceptions to errors that name the missing package or the failed download."""
    try:
        yield
    except ImportError as error:
        message = f"{error.name} is not installed: pip install {error.name}, or give local files"
        raise FerretError("dependency.missing", message) from error
    except Exception as error:  # httpx, httpx2, OSError or ValueError, depending on the hub library's version
        why = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise _invalid(repository, f"{wanted} cannot be downloaded ({why}): give local files") from error


def _invalid(repository: str, message: str) -> FerretError:
    return FerretError.of_field("dataset.invalid", OPTION, repository, message)
