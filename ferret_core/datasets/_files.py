"""Access to the files in a dataset's options."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from ferret_core.datasets._hub import OPTION
from ferret_core.datasets._record import invalid
from ferret_core.system import untrusted_files


@contextmanager
def opened(path: str, option: str) -> Generator[untrusted_files.BoundedFile]:
    """Opens the file at ``path``; raises ``dataset.invalid`` about ``option`` if it is unreadable or not allowed."""
    try:
        with untrusted_files.open_untrusted(path, anywhere=option == OPTION) as file:
            yield file
    except untrusted_files.UntrustedFileError as error:
        raise invalid(option, path, str(error)) from error


def require_allowed(path: str, option: str) -> None:
    """Raises ``dataset.invalid`` if the path must not be accessed."""
    try:
        untrusted_files.allowed(path)
    except untrusted_files.UntrustedFileError as error:
        raise invalid(option, path, str(error)) from error
