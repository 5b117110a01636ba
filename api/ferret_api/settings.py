"""The API's settings: those every service has, and how this process serves."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ferret_db.settings import FROM_FILE, ServiceSettings


class ApiSettings(ServiceSettings):
    """Read from the environment with the prefix ``FERRET_``."""

    host: str = Field(default="127.0.0.1", description="Address to listen on; 0.0.0.0 for every interface")
    port: int = Field(default=8765, ge=0, le=65535, description="Port to listen on; 0 for any free one")
    admin_token: Annotated[str | None, FROM_FILE] = Field(
        default=None,
        min_length=16,
        repr=False,
        description="The admin token; by default generated at the first start and kept in admin.token under home",
    )
    max_request_bytes: int = Field(default=1 << 20, ge=1024, description="Largest JSON body accepted, in bytes")
    max_upload_bytes: int = Field(default=256 << 20, ge=1024, description="Largest contribution accepted, in bytes")
    poll_seconds: float = Field(
        default=2, gt=0, description="Seconds that an idle participant is told to wait before it asks again"
    )
    stream_poll_seconds: float = Field(default=0.5, gt=0, description="Seconds between two looks for new events")
    shutdown_seconds: int = Field(default=5, ge=1, description="Seconds given to running requests when the API stops")
