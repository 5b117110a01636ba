"""The API application: routes, middleware and resources that live as long as the process."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from ferret_api.alerts.dispatcher import dispatching
from ferret_api.context import Context
from ferret_api.events.streams import EventPollers
from ferret_api.http import errors, openapi
from ferret_api.http.body_limit import BodyLimit
from ferret_api.http.dashboard import dashboard
from ferret_api.http.middleware import RequestScope
from ferret_api.http.query_validation import OnlyKnownParameters
from ferret_api.http.trusted_hosts import KnownHosts
from ferret_api.oidc.provider import Provider
from ferret_api.participants.batches import RequestBatchers
from ferret_api.participants.last_seen import Presence, noting
from ferret_api.participants.long_poll_groups import LongPollGroups
from ferret_api.rate_limit_middleware import RateLimitMiddleware
from ferret_api.routers import (
    alerts,
    artifacts,
    assignments,
    audit,
    catalog,
    contributions,
    drafts,
    enrolments,
    events,
    experiments,
    ledger,
    lifecycle,
    metrics,
    oidc,
    participants,
    participation,
    playground,
    projects,
    rejections,
    rounds,
    secure_sums,
    sessions,
    tokens,
    update_statistics,
    users,
)
from ferret_api.routers.system import api_router, root_router
from ferret_api.schemas import PREFIX
from ferret_api.settings import ApiSettings
from ferret_api.system import readiness
from ferret_api.system.prometheus import RequestFigures, RequestMeter
from ferret_api.system.readiness import TtlCache
from ferret_api.system.request_span import RequestSpan
from ferret_core import __version__

READINESS_SECONDS = 1.0

ROUTERS: tuple[APIRouter, ...] = (
    assignments.router,  # the most frequent requests match first
    participants.router,
    root_router,
    api_router,
    oidc.router,
    experiments.router,
    drafts.router,
    lifecycle.router,
    rounds.router,
    secure_sums.router,
    update_statistics.router,
    contributions.router,
    rejections.router,
    participation.router,
    metrics.router,
    artifacts.router,
    ledger.router,
    events.router,
    playground.router,
    catalog.router,
    enrolments.router,
    audit.router,
    projects.router,
    alerts.router,
    users.router,
    tokens.router,
    sessions.router,
)


class Api(FastAPI):
    """A FastAPI application with an extended OpenAPI document."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            own = [route for router in ROUTERS for route in router.routes]
            self.openapi_schema = openapi.build(self.title, self.version, self.description, self.routes, own)
        return self.openapi_schema


def create_app(settings: ApiSettings | None = None, context: Context | None = None) -> FastAPI:
    """Builds the application. ``settings`` default to the environment; without a ``context``, it opens its own."""
    settings = settings or ApiSettings()
    figures = RequestFigures()
    app = Api(
        title="Ferret",
        version=__version__,
        description="Tunes all parameters of a language model over data that never leaves its owners.",
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,  # FastAPI's page loads scripts from another site
        redoc_url=None,
        lifespan=_lifespan(settings, context),
        middleware=[
            Middleware(RequestSpan),
            Middleware(RequestScope, settings=settings),
            Middleware(RequestMeter, figures=figures),
            Middleware(KnownHosts, settings=settings),
            Middleware(RateLimitMiddleware),
            Middleware(BodyLimit, settings=settings),
        ],
    )
    app.state.requests = figures
    app.state.provider = Provider.of(settings)
    errors.install(app)
    app.router.routes.extend(_routes())
    app.router.default = dashboard()
    return app


@cache
def _routes() -> list[BaseRoute]:
    """Returns the routes of all routers. All applications of a process share them: FastAPI's analysis takes 0.3 s."""
    analysed = APIRouter(dependencies=[OnlyKnownParameters])
    for router in ROUTERS:
        analysed.include_router(router)
    return analysed.routes


def _lifespan(settings: ApiSettings, context: Context | None) -> Any:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        app.state.context = opened = context or Context.open(settings)
        app.state.narrowed = opened.narrowed()
        app.state.feeds = feeds = EventPollers.of(opened)
        app.state.long_poll_groups = LongPollGroups.of_process(opened, feeds)
        app.state.batches = RequestBatchers(opened)
        app.state.presence = presence = Presence(opened)
        app.state.readiness = TtlCache(lambda: readiness.look(opened), READINESS_SECONDS)
        async with dispatching(opened), noting(presence):
            yield
        opened.close()

    return lifespan
