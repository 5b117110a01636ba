"""What every process of the service does first and last: logging, a look at the schema, an exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable

from ferret_core.protocol.errors import Exit, FerretError
from ferret_db import logs, migrate
from ferret_db.settings import ServiceSettings


def run(serve: Callable[[], None]) -> int:
    """Runs ``serve`` to its end; returns the exit code of what kept it from serving, said in one line on stderr."""
    try:
        serve()
    except FerretError as error:
        sys.stderr.write(f"{error.problem.title}: {error.detail}\n")
        return error.problem.exit
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    return Exit.OK


def prepare(settings: ServiceSettings) -> None:
    """Sets logging up and refuses to start on a database that is not at this version's schema."""
    logs.configure(settings.log_level, settings.log_format)
    migrate.check(settings.database_url)
