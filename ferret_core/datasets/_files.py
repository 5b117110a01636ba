"""Opens the files that a dataset's options name."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from ferret_core.datasets._hub import OPTION
from ferret_core.datasets._record import invalid
from ferret_core.system import untrusted_files


@contextmanager
def opened(path: str, option: str) -> Generator[untrusted_files.BoundedFile]:
    """The file at ``path``; ``dataset.invalid`` about ``option`` where it cannot be read, or may not be."""
    try:
        with untrusted_files.reading(path, anywhere=option == OPTION) as file:
            yield file
    except untrusted_files.UnfitFile as error:
        raise invalid(option, path, str(error)) from error


def require_allowed(path: str, option: str) -> None:
    """``dataset.invalid`` where the path must not even be looked at."""
    try:
        untrusted_files.allowed(path)
    except untrusted_files.UnfitFile as error:
        raise invalid(option, path, str(error)) from error
