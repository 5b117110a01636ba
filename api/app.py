"""The application: routes, middleware and the connections that live as long as the process."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.middleware import Middleware

from api import errors, openapi
from api.artifacts.endpoints import router as artifacts
from api.catalog.endpoints import router as catalog
from api.context import Context
from api.contributions.endpoints import router as contributions
from api.events.endpoints import router as events
from api.experiments.endpoints import router as experiments
from api.ledger.endpoints import router as ledger
from api.lifecycle.endpoints import router as lifecycle
from api.metrics.endpoints import router as metrics
from api.middleware import BodyLimit, RequestScope
from api.participants.endpoints import router as participants
from api.rejections.endpoints import router as rejections
from api.rounds.endpoints import router as rounds
from api.schemas import PREFIX
from api.settings import ApiSettings
from api.spa import dashboard
from api.system.endpoints import DISTRIBUTION, api_router, root_router
from api.system.prometheus import RequestFigures, RequestMeter

ROUTERS: tuple[APIRouter, ...] = (
    root_router,
    api_router,
    experiments,
    lifecycle,
    rounds,
    contributions,
    rejections,
    metrics,
    artifacts,
    ledger,
    events,
    catalog,
    participants,
)


class Api(FastAPI):
    """A FastAPI application whose OpenAPI document is ours."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = openapi.document(self.title, self.version, self.description, self.routes)
        return self.openapi_schema


def create_app(settings: ApiSettings | None = None, context: Context | None = None) -> FastAPI:
    """The service with ``settings``, by default those of the environment; without a ``context`` it opens its own."""
    settings = settings or ApiSettings()
    figures = RequestFigures()
    app = Api(
        title="Ferret",
        version=version(DISTRIBUTION),
        description="Tunes all parameters of a language model over data that never leaves its owners.",
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,  # they load scripts from elsewhere
        redoc_url=None,
        lifespan=_lifespan(settings, context),
        middleware=[
            Middleware(RequestScope),
            Middleware(RequestMeter, figures=figures),
            Middleware(BodyLimit, json_bytes=settings.max_request_bytes, upload_bytes=settings.max_upload_bytes),
        ],
    )
    app.state.requests = figures
    errors.install(app)
    for router in ROUTERS:
        app.include_router(router)
    app.router.default = dashboard()
    return app


def _lifespan(settings: ApiSettings, context: Context | None) -> Any:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        app.state.context = opened = context or Context.open(settings)
        yield
        opened.close()

    return lifespan
