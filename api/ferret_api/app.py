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
from ferret_api.routers.alerts import router as alerts
from ferret_api.routers.artifacts import router as artifacts
from ferret_api.routers.assignments import router as assignments
from ferret_api.routers.audit import router as audit
from ferret_api.routers.catalog import router as catalog
from ferret_api.routers.contributions import router as contributions
from ferret_api.routers.drafts import router as drafts
from ferret_api.routers.enrolments import router as enrolments
from ferret_api.routers.events import router as events
from ferret_api.routers.experiments import router as experiments
from ferret_api.routers.ledger import router as ledger
from ferret_api.routers.lifecycle import router as lifecycle
from ferret_api.routers.metrics import router as metrics
from ferret_api.routers.oidc import router as oidc
from ferret_api.routers.participants import router as participants
from ferret_api.routers.participation import router as participation
from ferret_api.routers.playground import router as playground
from ferret_api.routers.projects import router as projects
from ferret_api.routers.rejections import router as rejections
from ferret_api.routers.rounds import router as rounds
from ferret_api.routers.sessions import router as sessions
from ferret_api.routers.system import api_router, root_router
from ferret_api.routers.tokens import router as tokens
from ferret_api.routers.update_statistics import router as updates
from ferret_api.routers.users import router as users
from ferret_api.schemas import PREFIX
from ferret_api.settings import ApiSettings
from ferret_api.system import readiness
from ferret_api.system.prometheus import RequestFigures, RequestMeter
from ferret_api.system.readiness import TtlCache
from ferret_api.system.request_span import RequestSpan
from ferret_core import __version__

READINESS_SECONDS = 1.0

ROUTERS: tuple[APIRouter, ...] = (
    assignments,  # the most frequent requests match first
    participants,
    root_router,
    api_router,
    oidc,
    experiments,
    drafts,
    lifecycle,
    rounds,
    updates,
    contributions,
    rejections,
    participation,
    metrics,
    artifacts,
    ledger,
    events,
    playground,
    catalog,
    enrolments,
    audit,
    projects,
    alerts,
    users,
    tokens,
    sessions,
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
        app.state.boards = LongPollGroups.of_process(opened, feeds)
        app.state.batches = RequestBatchers(opened)
        app.state.presence = presence = Presence(opened)
        app.state.readiness = TtlCache(lambda: readiness.look(opened), READINESS_SECONDS)
        async with dispatching(opened), noting(presence):
            yield
        opened.close()

    return lifespan
