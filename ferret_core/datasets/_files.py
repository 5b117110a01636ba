"""Opens the files that a dataset's options name."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from ferret_core import files
from ferret_core.datasets._hub import OPTION
from ferret_core.datasets._record import invalid


@contextmanager
def opened(path: str, option: str) -> Generator[files.BoundedFile]:
    """The file at ``path``; ``dataset.invalid`` about ``option`` where it cannot be read, or may not be."""
    try:
        with files.reading(path, anywhere=option == OPTION) as file:
            yield file
    except files.UnfitFile as error:
        raise invalid(option, path, str(error)) from error


def require_allowed(path: str, option: str) -> None:
    """``dataset.invalid`` where the path must not even be looked at."""
    try:
        files.allowed(path)
    except files.UnfitFile as error:
        raise invalid(option, path, str(error)) from error
