"""Settings that the API and the workers share; each is the environment variable ``FERRET_`` + its name.

A setting marked :data:`FROM_FILE` can instead be read from the file named by ``FERRET_<NAME>_FILE``, so that passwords
stay out of process environments (Docker and Kubernetes mount secrets as files).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from ferret_core import sample
from ferret_core.protocol.errors import FerretError, FieldError, described
from ferret_core.protocol.limits import MAX_LEASE_SECONDS
from ferret_core.storage import ObjectStore, Storage, open_storage
from ferret_core.system.untrusted_files import USERS_DATA, Readable
from ferret_runtime.broker import address
from ferret_runtime.log_setup import LogFormat, LogLevel

PREFIX = "FERRET_"
FROM_FILE = "from_file"
_FOLLOWS = "default_factory_not_called"
"""Error type of a setting with a default that depends on an invalid setting."""


def _absolute(path: Path) -> Path:
    return path.expanduser().absolute()


def _absolute_all(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    return tuple(map(_absolute, paths))


def _split(value: object) -> object:
    return [part for part in value.split(os.pathsep) if part] if isinstance(value, str) else value


class _Files(PydanticBaseSettingsSource):
    """The source ``FERRET_<NAME>_FILE`` for the settings marked :data:`FROM_FILE`."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        variable = f"{PREFIX}{field_name}_file".upper()
        path = os.environ.get(variable)
        if FROM_FILE not in field.metadata or not path:
            return None, field_name, False
        try:
            return Path(path).read_text(encoding="utf-8").strip(), field_name, False
        except (OSError, UnicodeDecodeError) as error:
            raise FerretError.of_field("settings.invalid", variable, path, f"cannot be read: {error}") from error

    def __call__(self) -> dict[str, Any]:
        found = {name: self.get_field_value(field, name)[0] for name, field in self.settings_cls.model_fields.items()}
        return {name: value for name, value in found.items() if value is not None}


class ServiceSettings(BaseSettings):
    """The service's shared settings. Every state path has a default under ``home``, so a laptop needs no settings."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="ignore", frozen=True)

    home: Annotated[Path, AfterValidator(_absolute)] = Field(
        default=Path("~/.ferret"), validate_default=True, description="Folder of all files of the embedded service"
    )
    database_url: Annotated[str, FROM_FILE] = Field(
        default_factory=lambda data: f"sqlite:///{data['home']}/ferret.db",
        repr=False,
        description="SQLAlchemy URL: sqlite:////absolute/path.db or postgresql://user:password@host/name",
    )
    broker_url: Annotated[str, AfterValidator(address.broker_url), FROM_FILE] = Field(
        default="redis://127.0.0.1:6379/0",
        repr=False,
        description="URL of the Redis for task messages, the API's request counters and the playground: "
        "redis://user:password@host:port/number",
    )
    storage_url: str = Field(
        default_factory=lambda data: f"file://{data['home']}/storage",
        description="Storage of contributions and checkpoints: file:///folder or s3://bucket/prefix",
    )
    s3_endpoint: str | None = Field(
        default=None, pattern=r"^https?://[^@]+$", description="Address of an S3-compatible store other than Amazon's"
    )
    s3_region: str | None = Field(default=None, description="Region of the bucket; by default that of AWS_REGION")
    s3_path_style: bool | None = Field(
        default=None,
        description="True if the bucket's name is in the path of addresses and not in their host; "
        "default: true with an endpoint",
    )
    s3_part_bytes: int = Field(
        default=16 << 20,
        ge=5 << 20,
        le=5 << 30,
        description="Files of more bytes go to the bucket in parts of this size; four are in memory simultaneously",
    )
    s3_attempts: int = Field(default=5, ge=1, description="Maximum attempts of a request to the bucket")
    s3_timeout_seconds: float = Field(
        default=20, gt=0, description="Seconds without a response after which a request to the bucket has failed"
    )
    s3_cache: Annotated[Path, AfterValidator(_absolute)] = Field(
        default_factory=lambda data: data["home"] / "cache",
        description="Folder of this machine's copies of the bucket's files, and of pending uploads",
    )
    s3_cache_bytes: int = Field(
        default=64 << 30, ge=0, description="Maximum bytes of the copies; the least recently used are deleted"
    )
    data_roots: Annotated[tuple[Path, ...], NoDecode, BeforeValidator(_split), AfterValidator(_absolute_all)] = Field(
        default_factory=lambda data: (data["home"] / USERS_DATA, sample.model_path().parent),
        description="Folders, separated by colons, of data and models named in specifications. "
        "Within home only its folder data is readable, whatever is set here",
    )
    lease_seconds: float = Field(
        default=60,
        gt=0,
        le=MAX_LEASE_SECONDS,
        description="Seconds without a heartbeat after which work is considered lost and redone",
    )
    running_experiments: int = Field(
        default=4,
        ge=1,
        description="Maximum simultaneous experiments without real participants; others wait in order of submission",
    )
    heartbeat: Path | None = Field(
        default=None, description="File that the process touches every second while it works; for supervisors"
    )
    log_level: LogLevel = Field(default="info", description="Lowest level that is logged")
    log_format: LogFormat = Field(default="text", description="Text for people, or one JSON document per line")

    log_bytes: int = Field(
        default=10 << 20,
        ge=1024,
        description="Size in bytes of a log under home at which ferret serve starts a new one",
    )
    log_files: int = Field(
        default=3, ge=1, description="Number of older logs per process that are kept under home as .1, .2, …"
    )

    @property
    def readable(self) -> Readable:
        """Returns the files that specifications may name."""
        storage = urlsplit(self.storage_url)
        folders = (Path(unquote(storage.path)),) if storage.scheme == "file" else ()
        return Readable(self.data_roots, self.home, (*folders, self.s3_cache))

    def open_storage(self) -> Storage:
        """Opens the storage at ``storage_url``."""
        store = ObjectStore(
            cache=self.s3_cache,
            cache_bytes=self.s3_cache_bytes,
            endpoint=self.s3_endpoint,
            region=self.s3_region,
            path_style=self.s3_path_style,
            part_bytes=self.s3_part_bytes,
            attempts=self.s3_attempts,
            timeout_seconds=self.s3_timeout_seconds,
        )
        return open_storage(self.storage_url, store)

    @classmethod
    def read(cls, **given: Any) -> Self:
        """Reads the environment, which ``given`` override; ``settings.invalid`` names the wrong variables."""
        try:
            return cls(**given)
        except ValidationError as error:
            wrong = [detail for detail in error.errors(include_url=False) if detail["type"] != _FOLLOWS]
            errors = [_variable(cls, field) for field in described(wrong).told]
            detail = "; ".join(f"{field.field}: {field.message}" for field in errors)
            raise FerretError("settings.invalid", detail, errors) from error

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, _Files(settings_cls)


def _variable(settings: type[BaseSettings], error: FieldError) -> FieldError:
    """Adds the environment variable to the error's message, and the value unless it is secret."""
    name, _, part = error.field.partition(".")
    secret = not settings.model_fields[name].repr
    message = error.message if secret else f"{error.message}, not {error.value!r}"
    field = ".".join(filter(None, (f"{PREFIX}{name}".upper(), part)))
    return FieldError(field=field, message=message, value=None if secret else error.value)
