"""What the Makefile runs before anything is installed: standard library only. Here, so that any Python can say it."""

import platform
import sys

if sys.version_info < (3, 11):  # noqa: UP036 - the one place that an older Python reads
    sys.exit("Ferret needs Python 3.11 or newer, not " + platform.python_version() + "; set PYTHON=/path/to/python3.11")
