"""``python -m ferret_worker train|aggregate|playground``: one Celery worker process on one queue."""

from __future__ import annotations

import argparse
import sys

from ferret_core.heartbeat import Heartbeat
from ferret_core.protocol.tasks import Queue
from ferret_db import process, tracing
from ferret_worker.settings import WorkerSettings


def main(arguments: list[str] | None = None) -> int:
    """Works until a signal; returns the exit code of what kept it from working."""
    parser = argparse.ArgumentParser(prog="python -m ferret_worker", description="Run one of Ferret's workers.")
    parser.add_argument("queue", choices=[queue.value for queue in Queue], help="which kind of work this process does")
    queue = Queue(parser.parse_args(arguments).queue)

    def run() -> None:
        settings = WorkerSettings.read()
        process.prepare(settings)
        tracing.start(f"ferret-{queue}")
        if settings.heartbeat:
            Heartbeat(settings.heartbeat).start()
        if queue == Queue.PLAYGROUND:
            from ferret_worker.playground.app import serve  # without torch, until it is asked something

            serve(settings)
            return
        from ferret_worker.app import work  # with torch: seconds and 600 MB that a refusal to start can do without

        work(settings, queue)

    return process.run(run)


if __name__ == "__main__":
    sys.exit(main())
