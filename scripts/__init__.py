"""Scripts that the Makefile runs before anything is installed, with the standard library only."""

import platform
import sys

if sys.version_info < (3, 11):  # noqa: UP036 - the one place that an older Python reads
    sys.exit("Ferret needs Python 3.11 or newer, not " + platform.python_version() + "; set PYTHON=/path/to/python3.11")


class Refusal(Exception):
    """A set-up is refused; the message has the reason and the next step."""
