"""The service of the API's tests, for those who attack it."""

from __future__ import annotations

from tests.api.conftest import either_site as either_site
from tests.api.conftest import home as home
from tests.api.conftest import make_blob as make_blob
from tests.api.conftest import make_settings as make_settings
from tests.api.conftest import migrated_postgresql as migrated_postgresql
from tests.api.conftest import serve as serve
from tests.api.conftest import settings as settings
from tests.api.conftest import shared_site as shared_site
from tests.api.conftest import site as site
