"""``python -m ferret_api``: the API process."""

from __future__ import annotations

import argparse
import sys

from ferret_api.settings import ApiSettings
from ferret_db import bootstrap
from ferret_runtime import tracing


def main(arguments: list[str] | None = None) -> int:
    """Serves until a signal arrives; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m ferret_api", description="Serve Ferret's REST API and dashboard.")
    parser.add_argument("--host", help="address to listen on, instead of FERRET_HOST")
    parser.add_argument("--port", type=int, help="port to listen on, instead of FERRET_PORT")
    given = {name: value for name, value in vars(parser.parse_args(arguments)).items() if value is not None}

    def run() -> None:
        settings = ApiSettings.read(**given)
        bootstrap.prepare(settings)
        tracing.start("ferret-api")
        from ferret_api.server import serve  # slow to import, and unnecessary if the start fails

        serve(settings)

    return bootstrap.run(run)


if __name__ == "__main__":
    sys.exit(main())
