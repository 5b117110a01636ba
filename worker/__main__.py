"""``python -m worker train|aggregate``: one Celery worker process on one queue."""

from __future__ import annotations

import argparse
import sys

from ferret_core.protocol.tasks import Queue
from ferret_db import process
from worker.app import work
from worker.settings import WorkerSettings


def main(arguments: list[str] | None = None) -> int:
    """Works until a signal; returns the exit code of what kept it from working."""
    parser = argparse.ArgumentParser(prog="python -m worker", description="Run one of Ferret's workers.")
    parser.add_argument("queue", choices=[queue.value for queue in Queue], help="which work this process takes")
    queue = Queue(parser.parse_args(arguments).queue)

    def run() -> None:
        settings = WorkerSettings.read()
        process.prepare(settings)
        work(settings, queue)

    return process.run(run)


if __name__ == "__main__":
    sys.exit(main())
