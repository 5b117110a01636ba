"""Reads a Parquet file of a dataset on the Hugging Face hub, or of the mirror that ``HF_ENDPOINT`` names."""

from __future__ import annotations

from typing import Any

from ferret_core.protocol.errors import FerretError


def read_parquet(repository: str, revision: str | None, filename: str) -> list[dict[str, Any]]:
    """The file's rows; it is downloaded once and kept in the hub's own cache.

    Raises ``dataset.invalid`` about ``dataset.hub``, ``setup.missing`` without the packages of the extra ``hub``.
    """
    try:
        import pyarrow as arrow
        from huggingface_hub import hf_hub_download
        from pyarrow import parquet
    except ImportError as error:
        message = f"{error.name} is not installed: pip install {error.name}, or give local files"
        raise FerretError("setup.missing", message) from error
    try:
        path = hf_hub_download(repository, filename, repo_type="dataset", revision=revision)
    except Exception as error:  # httpx, httpx2, OSError or ValueError, as the hub's version has it
        why = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise _invalid(repository, f"{filename} cannot be downloaded ({why}): give train and test as files") from error
    try:
        return parquet.read_table(path).to_pylist()
    except arrow.ArrowException as error:
        raise _invalid(repository, f"{path} is not a whole Parquet file ({error}): delete it and try again") from error


def _invalid(repository: str, message: str) -> FerretError:
    return FerretError.of_field("dataset.invalid", "dataset.hub", repository, message)
