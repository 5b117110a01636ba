"""Uvicorn, stopped promptly: event streams end before it waits for open requests."""

from __future__ import annotations

import errno
import logging
import socket

import uvicorn
from fastapi import FastAPI

from ferret_api.app import create_app
from ferret_api.context import Context
from ferret_api.settings import ApiSettings
from ferret_core.protocol.errors import FerretError

logger = logging.getLogger(__name__)


class Server(uvicorn.Server):
    """Serves one application on a socket that is bound already."""

    def __init__(self, app: FastAPI, context: Context) -> None:
        self.context = context
        settings = context.settings
        config = uvicorn.Config(
            app,
            log_config=None,
            ws="none",
            access_log=settings.log_level == "debug",
            server_header=False,
            timeout_graceful_shutdown=settings.shutdown_seconds,
        )
        super().__init__(config)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Uvicorn tells the application only after every request has ended, which a stream never does by itself.
        self.context.stopping.set()
        await super().shutdown(sockets)


def serve(settings: ApiSettings) -> None:
    """Serves until a signal; raises what keeps it from starting, e.g. ``port.in_use`` or ``settings.invalid``."""
    with listen(settings.host, settings.port) as listener:
        context = Context.open(settings)
        host, port = listener.getsockname()[:2]
        logger.info("Ferret's API listens on http://%s:%d", f"[{host}]" if ":" in host else host, port)
        Server(create_app(settings, context), context).run([listener])


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any free one."""
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=2048
        )
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise FerretError.of_field(
                "port.in_use",
                "FERRET_PORT",
                port,
                f"another program already listens on {host}: stop it, or choose another --port",
            ) from error
        if error.errno == errno.EACCES:
            raise FerretError.of_field(
                "settings.invalid", "FERRET_PORT", port, "is not allowed for this user: choose one above 1023"
            ) from error
        raise FerretError.of_field(
            "settings.invalid", "FERRET_HOST", host, f"is not an address of this machine: {error}"
        ) from error
