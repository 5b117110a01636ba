"""Uvicorn server with connection limits and a prompt shutdown, which ends event streams first."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import socket
from functools import partial
from typing import cast

import uvicorn
from fastapi import FastAPI

from ferret_api.app import create_app
from ferret_api.client_network import networks
from ferret_api.connections.listener import Listener, TlsListener
from ferret_api.connections.pool import Connections
from ferret_api.connections.protocol import DeadlineProtocol
from ferret_api.context import Context
from ferret_api.settings import ApiSettings
from ferret_api.tls_reload import Tls
from ferret_core.protocol.errors import FerretError
from ferret_runtime import tracing

logger = logging.getLogger(__name__)

BACKLOG = 2048
SHUTDOWN_SECONDS = 5
"""Time for running requests to finish when the API stops."""
TICKS_PER_SECOND = 10  # of uvicorn's main loop


class Server(uvicorn.Server):
    """Server of one application on a socket that is already bound."""

    def __init__(self, app: FastAPI, context: Context) -> None:
        self.context = context
        settings = context.settings
        self.connections = Connections(settings.sizing, networks(settings.trusted_proxies))
        self.tls = Tls(settings.certificate) if settings.certificate else None
        config = uvicorn.Config(
            app,
            log_config=None,
            loop="asyncio",  # it calls the listener's accept method
            http=cast(type[asyncio.Protocol], partial(DeadlineProtocol, connections=self.connections)),
            ws="none",
            access_log=settings.log_level == "debug",
            server_header=False,
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=settings.trusted_proxies,
            backlog=BACKLOG,
            timeout_keep_alive=settings.sizing.keep_alive_seconds,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
        super().__init__(config)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        gc.collect()
        gc.freeze()  # loaded modules stay; scanning them again would stall all requests
        listen = TlsListener if self.tls else Listener
        self.config.ssl = self.tls.context if self.tls else None
        await super().startup([listen(listening, self.connections) for listening in sockets or []])

    async def on_tick(self, counter: int) -> bool:
        if counter % TICKS_PER_SECOND == 0:
            self._beat()
            self.connections.sweep()
            if self.tls:
                self.tls.renew()
        return await super().on_tick(counter)

    def _beat(self) -> None:
        """Touches the heartbeat file, which shows that the event loop is running."""
        if path := self.context.settings.heartbeat:
            try:
                path.touch(0o600)
            except OSError as error:
                logger.warning("could not touch %s: %s", path, error.strerror)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Uvicorn notifies the application only after all requests have ended. Streams never end by themselves.
        self.context.stopping.set()
        await super().shutdown(sockets)
        tracing.stop()  # uvicorn raises the signal again, which ends the process immediately


def serve(settings: ApiSettings) -> None:
    """Serves until a signal arrives. Raises errors of the start, e.g. ``port.in_use`` or ``settings.invalid``."""
    with _listener(settings) as listener:
        context = Context.open(settings)
        host, port = listener.getsockname()[:2]
        scheme = "https" if settings.certificate else "http"
        logger.info("Ferret's API listens on %s://%s:%d", scheme, f"[{host}]" if ":" in host else host, port)
        Server(create_app(settings, context), context).run([listener])


def _listener(settings: ApiSettings) -> socket.socket:
    if settings.listen_fd is not None:
        return socket.socket(fileno=settings.listen_fd)
    return listen(settings.host, settings.port)


def listen(host: str, port: int) -> socket.socket:
    """Returns a listening socket. Port 0 selects a free port."""
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=BACKLOG
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
