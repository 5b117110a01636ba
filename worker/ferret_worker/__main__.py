"""``python -m ferret_worker train|aggregate|playground``: one Celery worker process on one queue.

``torchrun --nproc-per-node N -m ferret_worker train``: N processes that form one worker and hold models together.
"""

from __future__ import annotations

import argparse
import sys

from ferret_core.distributed.environment import SIZE, from_environment
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.task_names import Queue
from ferret_core.system.heartbeat import Heartbeat
from ferret_db import bootstrap
from ferret_runtime import tracing
from ferret_worker.settings import WorkerSettings

ALONE = "only workers that train work as a team: start this one without torchrun"


def main(arguments: list[str] | None = None) -> int:
    """Works until a signal. Returns the exit code, an error's if it could not work."""
    parser = argparse.ArgumentParser(prog="python -m ferret_worker", description="Run one of Ferret's workers.")
    parser.add_argument("queue", choices=[queue.value for queue in Queue], help="kind of work for this process")
    queue = Queue(parser.parse_args(arguments).queue)

    def run() -> None:
        settings = WorkerSettings.read()
        bootstrap.prepare(settings)
        tracing.start(f"ferret-{queue}")
        where = from_environment()
        if where is not None and queue != Queue.TRAIN:
            raise FerretError.of_field("settings.invalid", SIZE, where.size, ALONE)
        if settings.heartbeat and (where is None or where.rank == 0):
            Heartbeat(settings.heartbeat).start()
        if queue == Queue.PLAYGROUND:
            from ferret_worker.playground.app import serve  # without torch, until the first question

            serve(settings)
            return
        from ferret_worker.app import start  # with torch: seconds and 600 MB that a refusal to start can do without

        start(settings, queue)

    return bootstrap.run(run)


if __name__ == "__main__":
    sys.exit(main())
