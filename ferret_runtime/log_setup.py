"""Structured logs: one line per event, as text or as JSON, with the ids of its subjects.

The ids are bound to the context (``contextvars``), so every line logged inside carries them, whichever library it comes
from::

    with logs.bound(experiment="exp_5f0c9f6a3b1d2e47", round=3):
        logger.info("aggregated")

They are called ``experiment``, ``round``, ``participant``, ``task``, ``worker`` and ``request``.
"""

from __future__ import annotations

import logging
from typing import Literal

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from ferret_core.protocol.sanitize import shown, shown_lines

LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]

TALKATIVE = {
    "absl": "WARNING",
    "alembic": "WARNING",
    "boto3": "WARNING",
    "botocore": "WARNING",
    "opentelemetry.exporter": "CRITICAL",
    "opentelemetry.sdk._shared_internal": "CRITICAL",
    "s3transfer": "WARNING",
}
"""Verbose libraries: they log every evaluation, look at the schema, request to a store (with its signature), or span
that the collector refuses. ``ferret_runtime.tracing`` reports the last once a minute.
"""

bound = structlog.contextvars.bound_contextvars


def configure(level: LogLevel, format: LogFormat) -> None:
    """Sends all logs of this process to stderr in one format, including libraries' logs and Python warnings."""
    handler = logging.StreamHandler()
    handler.setFormatter(_formatter(format))
    # Not logging.config, which would close all existing handlers, including the embedding program's.
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name, least in TALKATIVE.items():
        logging.getLogger(name).setLevel(least)
    logging.captureWarnings(True)


def _formatter(format: LogFormat) -> structlog.stdlib.ProcessorFormatter:
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=before,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_rendering(format)],
    )


def _rendering(format: LogFormat) -> list[Processor]:
    if format == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(sort_keys=True)]
    plain = structlog.dev.plain_traceback
    console = structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0, pad_level=False, exception_formatter=plain)

    def safe_to_show(logger: WrappedLogger, method: str, event: EventDict) -> str:
        """Renders the entry and escapes it with its traceback, in which an exception may quote any text."""
        return shown_lines(console(logger, method, event))

    return [_one_line_each, safe_to_show]


def _one_line_each(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Escapes quoted text in an entry, such as a participant's reason, so that it cannot pass for another entry."""
    return {
        name: shown(value) if isinstance(value, str) and name != "stack" else value for name, value in event.items()
    }
