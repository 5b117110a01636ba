"""The same in Chromium, where it matters: plain http, a name that is not localhost, a page at another port.

There the browser sends the cookie along (``SameSite`` ignores ports) and no ``Sec-Fetch-Site``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests import chromium

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

NAME = "ferret.test"
FORM = b"""<!doctype html><title>evil</title><form method=post target=frame><button>win</button></form>
<iframe name=frame></iframe>"""


class Elsewhere(BaseHTTPRequestHandler):
    """A page of somebody else."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(FORM)))
        self.end_headers()
        self.wfile.write(FORM)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def elsewhere() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://{NAME}:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def page(need: Callable[[bool, str], None]) -> Iterator[Page]:
    with chromium.opened(need, f"--host-resolver-rules=MAP {NAME} 127.0.0.1") as page:
        yield page


def test_a_page_at_another_port_cannot_move_an_experiment(
    serve: Any, make_settings: Any, elsewhere: str, page: Page
) -> None:
    live = serve(make_settings(allowed_hosts=NAME))
    forged, own = live.site.running(), live.site.running()
    url = f"http://{NAME}:{live.port}"

    page.goto(f"{url}/#token={live.site.context.admin.value}")
    expect(page.get_by_role("link", name="toy").first).to_be_visible(timeout=60_000)
    assert live.admin.get(f"/api/v1/experiments/{forged}").json()["state"] == "running"

    page.goto(elsewhere)
    page.evaluate("url => document.forms[0].action = url", f"{url}/api/v1/experiments/{forged}:pause")
    with page.expect_response("**:pause") as answered:
        page.get_by_role("button").click()
    headers = answered.value.request.all_headers()
    assert "cookie" in headers, "the browser did send the session along"
    assert "sec-fetch-site" not in headers
    assert answered.value.status == 403
    assert live.site.show(forged)["state"] == "running"

    page.goto(url)
    moved = page.evaluate(
        "path => fetch(path, {method: 'POST'}).then(answer => answer.status)", f"/api/v1/experiments/{own}:pause"
    )
    assert moved == 200, "the dashboard's own page may"
    assert live.site.show(own)["state"] == "paused"
