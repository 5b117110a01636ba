"""Requests made from the OpenAPI document, right and wrong, as everybody: no server error, and the document is true."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import requests
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its imports, not ours
    import schemathesis
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.core.result import Ok
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

from ferret_api.app import create_app
from ferret_api.settings import ApiSettings
from ferret_core.protocol.roles import Role
from tests.api.conftest import ADMIN, Live, bearer
from tests.api.people import a_user

pytestmark = [pytest.mark.timeout(1800)]
OTHERS = ("stranger", "participant", Role.RESEARCHER.value, Role.VIEWER.value, "browser")
ROLES = [Role.ADMIN.value, *(pytest.param(role, marks=pytest.mark.slow) for role in OTHERS)]
"""An administrator reaches the most; test_authorisation.py has the others."""
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
UNHEALTHY = {"get_readiness", "ask_model", "draw_example"}
"""They answer 503 where there is no broker and no worker of the playground, as here."""
BEFORE_ROUTING = {400, 404, 405, 421}
"""What a request gets that is not the operation's any more: another path, a broken head."""

SCHEMA = schemathesis.openapi.from_dict(create_app(ApiSettings()).openapi())


def operations() -> Iterator[Any]:
    for found in SCHEMA.get_all_operations():
        assert isinstance(found, Ok), found.err()
        yield found.ok()


OPERATIONS = {operation.definition.raw["operationId"]: operation for operation in operations()}


class Service(NamedTuple):
    """A running API, what there is to ask for, and everybody's headers."""

    url: str
    ids: dict[str, str]
    headers: dict[str, dict[str, str]]
    statuses: Counter[int]


@pytest.fixture(scope="module")
def service(make_shared_settings: Callable[..., ApiSettings]) -> Iterator[Service]:
    counted = ("failures_per_minute", "stranger_requests_per_minute", "participant_requests_per_minute")
    live = Live(make_shared_settings(**dict.fromkeys(counted, 10**9)))
    try:
        site = live.site
        member = site.member(simulated=())
        signed_in = requests.post(f"{live.url}/api/v1/session", json={"token": ADMIN}, timeout=20)
        cookie = "; ".join(f"{name}={value}" for name, value in signed_in.cookies.items())
        yield Service(
            live.url,
            # An experiment that ends here lets its event stream end.
            {
                "experiment_id": member.experiment_id,
                "assignment_id": member.assignment_id,
                "number": "1",
                "kind": "algorithms",
            },
            {
                "stranger": {},
                "participant": {"Authorization": member.client.headers["Authorization"]},
                **{role.value: {"Authorization": a_user(site, role).client.headers["Authorization"]} for role in Role},
                "admin": bearer(ADMIN),
                "browser": {"Cookie": cookie, "Origin": live.url},
            },
            Counter(),
        )
    finally:
        live.stop()


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_no_request_causes_a_server_error(
    service: Service, name: str, role: str, amount: Callable[[int, int], int]
) -> None:
    if name == "delete_session" and role == "browser":
        pytest.skip("it would sign the browser out; test_sessions.py does")
    for mode in MODES:
        strategy = OPERATIONS[name].as_strategy(generation_mode=mode)
        checked = settings(
            max_examples=amount(2, 25),
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            database=None,
        )(given(strategy, st.booleans())(lambda case, real: ask(service, name, role, case, real)))
        try:
            checked()
        except Exception as error:
            if "nsatisfiable" not in type(error).__name__:  # there is nothing wrong to send where nothing is sent
                raise


def test_every_role_asks() -> None:
    assert {Role.ADMIN.value, *OTHERS} == {"stranger", "participant", "browser", *(role.value for role in Role)}


def ask(service: Service, name: str, role: str, case: Any, real: bool) -> None:
    if name == "stream_events" and role in {*Role, "browser"} and real:
        return  # goes on until the experiment ends
    if real:
        case.path_parameters = {
            field: service.ids.get(field, value) for field, value in dict(case.path_parameters or {}).items()
        }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = case.call(base_url=service.url, headers=service.headers[role], timeout=30)
    service.statuses[answer.status_code] += 1
    if answer.status_code in BEFORE_ROUTING or (answer.status_code == 503 and name in UNHEALTHY):
        return
    case.validate_response(answer, checks=CHECKS)
