"""OpenTelemetry's environment variables that decide if and how traces leave the process.

Its packages read the others themselves: sampling, batches, time limits, headers and certificates.
"""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from ferret_core.protocol.errors import FerretError

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
PROTOCOL = "http/protobuf"


def endpoint_variable() -> str | None:
    """Returns the variable with the endpoint of traces. None if it is unset, or traces are disabled.

    Raises ``settings.invalid`` for an invalid http address, and for another protocol than OTLP over HTTP.
    """
    if _value("OTEL_SDK_DISABLED").lower() == "true" or _value("OTEL_TRACES_EXPORTER").lower() == "none":
        return None
    variable = next(filter(_value, ENDPOINTS), None)
    if variable is not None:
        _require_address(variable)
        _require_protocol()
    return variable


def _require_address(variable: str) -> None:
    parts = urlsplit(_value(variable))
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        message = "must be the collector's address, such as http://127.0.0.1:4318"
        raise FerretError.of_field("settings.invalid", variable, None, message)


def _require_protocol() -> None:
    variable = next(filter(_value, PROTOCOLS), None)
    if variable is not None and _value(variable) != PROTOCOL:
        message = f"is not supported: use {PROTOCOL}, which collectors take at port 4318"
        raise FerretError.of_field("settings.invalid", variable, _value(variable), message)


def _value(variable: str) -> str:
    return os.environ.get(variable, "").strip()
