"""Common start and end of every service process: logging, the schema check, the exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable

from ferret_core.protocol.errors import Exit, FerretError
from ferret_core.system.permissions import restrict_home
from ferret_db import schema_version
from ferret_runtime import file_descriptors, log_setup, tracing
from ferret_runtime.settings import ServiceSettings


def run(serve: Callable[[], None]) -> int:
    """Runs ``serve`` until it ends and returns the exit code. An error is reported in one line on stderr."""
    try:
        serve()
    except FerretError as error:
        sys.stderr.write(f"{error.problem.title}: {error.detail}\n")
        return error.problem.exit
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    finally:
        tracing.stop()
    return Exit.OK


def prepare(settings: ServiceSettings) -> None:
    """Sets up logging and limits, makes the home private, and refuses a database with another version's schema."""
    log_setup.configure(settings.log_level, settings.log_format)
    file_descriptors.raise_limit()
    restrict_home(settings.home)
    settings.home.mkdir(parents=True, exist_ok=True)  # creates the folder where database and storage are elsewhere
    schema_version.check(settings.database_url)
