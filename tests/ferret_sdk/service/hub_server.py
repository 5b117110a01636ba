"""A stand-in for the Hugging Face hub to write to: repositories, branches, large files and commits, in memory.

It speaks what https://huggingface.co/docs/hub/api and the Git LFS batch API say, as far as an upload of a folder asks.
"""

from __future__ import annotations

import base64
import json
import re
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self

TOKEN, OWNER = "hf_" + "w" * 34, "clinic"
MAIN = "main"
Files = dict[str, bytes]


class Repository:
    """Files by branch, and the messages of the commits."""

    def __init__(self, private: bool) -> None:
        self.private = private
        self.branches: dict[str, Files] = {MAIN: {".gitattributes": b""}}
        self.commits: list[tuple[str, str]] = []


class Hub:
    """``with Hub() as hub``: ``hub.url`` is what ``HF_ENDPOINT`` is to name.

    ``failures`` are statuses that the next requests get whose address holds the key; ``uploads`` counts large files.
    """

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.objects: Files = {}
        self.failures: dict[str, list[int]] = {}
        self.uploads = 0
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, found = hub.answer(self.command, self.path, self.headers.get("Authorization", ""), body)
                sent = json.dumps(found).encode()
                self.send_response(status)
                if status == 404:
                    self.send_header("X-Error-Code", "RepoNotFound")
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            do_GET = do_POST = do_PUT = answer

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, method: str, path: str, authorization: str, body: bytes) -> tuple[int, Any]:
        path = path.partition("?")[0]
        for part, statuses in self.failures.items():
            if part in path and statuses:
                return statuses.pop(0), {"error": "as told"}
        if path == "/api/validate-yaml":
            return 200, {"errors": [], "warnings": []}
        if method == "PUT":
            return self._store(path.rpartition("/")[2], body)
        if authorization != f"Bearer {TOKEN}":
            return 401, {"error": "Invalid username or password."}
        if path == "/api/repos/create":
            return self._create(json.loads(body))
        found = re.fullmatch(r"(?:/api/models)?/([^/]+/[^/]+?)(?:\.git/info/lfs/objects/(batch)|/(\w+)/([^/]+)|)", path)
        assert found is not None, path
        name, batch, verb, branch = found.groups()
        if name not in self.repositories:
            return 404, {"error": "Repository not found"}
        repository, verb = self.repositories[name], batch or verb or "revision"
        return getattr(self, f"_{verb}")(repository, name, branch or MAIN, body)

    def _create(self, wanted: Any) -> tuple[int, Any]:
        name = f"{wanted['organization']}/{wanted['name']}"
        if name in self.repositories:
            return 409, {"error": "You already created this model repo", "url": f"{self.url}/{name}"}
        if wanted["organization"] != OWNER:
            return 403, {"error": "You don't have the rights to create a model under this namespace"}
        private = wanted["private"] if "private" in wanted else wanted["visibility"] == "private"
        self.repositories[name] = Repository(private)
        return 200, {"url": f"{self.url}/{name}"}

    def _store(self, oid: str, body: bytes) -> tuple[int, Any]:
        assert sha256(body).hexdigest() == oid
        self.objects[oid] = body
        self.uploads += 1
        return 200, {}

    def _revision(self, repository: Repository, name: str, branch: str, body: bytes) -> tuple[int, Any]:
        return 200, {"id": name, "sha": _commit(len(repository.commits)), "private": repository.private, "siblings": []}

    def _branch(self, repository: Repository, name: str, branch: str, body: bytes) -> tuple[int, Any]:
        if branch in repository.branches:
            return 409, {"error": "Reference already exists"}
        repository.branches[branch] = dict(repository.branches[MAIN])
        return 200, {}

    def _tree(self, repository: Repository, name: str, branch: str, body: bytes) -> tuple[int, Any]:
        files = repository.branches[branch].items()
        return 200, [{"type": "file", "path": path, "size": len(data), "oid": _oid(path, data)} for path, data in files]

    def _preupload(self, repository: Repository, name: str, branch: str, body: bytes) -> tuple[int, Any]:
        files, told = repository.branches[branch], []
        for path in (file["path"] for file in json.loads(body)["files"]):
            oid = _oid(path, files[path]) if path in files else None
            mode = "lfs" if _is_large(path) else "regular"
            told.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        return 200, {"files": told}

    def _batch(self, repository: Repository, name: str, branch: str, body: bytes) -> tuple[int, Any]:
        objects = []
        for wanted in json.loads(body)["objects"]:
            upload = {"upload": {"href": f"{self.url}/large/{wanted['oid']}"}}
            objects.append(wanted if wanted["oid"] in self.objects else {**wanted, "actions": upload})
        return 200, {"transfer": "basic", "objects": objects}

    def _commit(self, repository: Repository, name: str, branch: str, body: bytes) -> tuple[int, Any]:
        files, message = repository.branches[branch], ""
        for line in map(json.loads, body.splitlines()):
            match line["key"], line["value"]:
                case "header", header:
                    message = header["summary"]
                case "file", file:
                    files[file["path"]] = base64.b64decode(file["content"])
                case "lfsFile", file:
                    files[file["path"]] = self.objects[file["oid"]]
                case "deletedFile", file:
                    del files[file["path"]]
                case key, _:
                    raise AssertionError(key)
        repository.commits.append((branch, message))
        oid = _commit(len(repository.commits))
        return 200, {"success": True, "commitOid": oid, "commitUrl": f"{self.url}/{name}/commit/{oid}"}


def _commit(number: int) -> str:
    return f"{number:040x}"


def _is_large(path: str) -> bool:
    return path.endswith(".safetensors")


def _oid(path: str, data: bytes) -> str:
    """What the hub calls a file's content: SHA-256 of a large one, Git's name of any other."""
    if _is_large(path):
        return sha256(data).hexdigest()
    return sha1(b"blob %d\0" % len(data) + data).hexdigest()
