"""What every process of the service does first and last: logging, a look at the schema, an exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable

from ferret_core.protocol.errors import Exit, FerretError
from ferret_core.system.permissions import keep_private
from ferret_db import migrate
from ferret_runtime import file_descriptors, logging, tracing
from ferret_runtime.settings import ServiceSettings


def run(serve: Callable[[], None]) -> int:
    """Runs ``serve`` to its end; returns the exit code of what kept it from serving, said in one line on stderr."""
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
    """Sets logging and limits up, closes the home to others, and refuses a database of another version's schema."""
    logging.configure(settings.log_level, settings.log_format)
    file_descriptors.raise_limit()
    keep_private(settings.home)
    settings.home.mkdir(parents=True, exist_ok=True)  # where database and storage are elsewhere nothing else makes it
    migrate.check(settings.database_url)
