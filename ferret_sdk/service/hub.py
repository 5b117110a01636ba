"""Upload of a tuned model to the Hugging Face hub, or to ``HF_ENDPOINT``, with the extra ``hub``.

The library sends only what the repository lacks, so an interrupted upload continues, and a repeated one changes
nothing. The token is that of ``HF_TOKEN``, or of ``hf auth login``.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ferret_core.protocol.errors import FerretError
from ferret_core.replica.export import ADDED
from ferret_sdk.service.base_model_weights import MANIFEST, WEIGHTS

EXTRA = "pip install 'ferret-participant[hub]'"
TOKENS = "set HF_TOKEN to one that may write, from https://huggingface.co/settings/tokens"
AGAIN = "run the same command again: what has arrived is not sent twice"


class HubUpload(NamedTuple):
    """The location of a pushed model, and its commit."""

    url: str
    commit: str


class Target(NamedTuple):
    """A repository OWNER/NAME, the branch to write to (None: the main one), and whether it is public."""

    repository: str
    branch: str | None = None
    public: bool = False


def make(target: Target) -> None:
    """Creates the repository and its branch if they are missing.

    Raises ``hub.refused`` without a token that permits this, and ``hub.conflict`` if the repository is public but
    ``target`` is not.
    """
    with _told(target):
        from huggingface_hub import HfApi, errors, get_token

        if target.repository.count("/") != 1:
            raise errors.HFValidationError
        if get_token() is None:
            raise FerretError("hub.refused", f"there is no token for {target.repository}: {TOKENS}")
        api = HfApi()
        api.create_repo(target.repository, private=not target.public, exist_ok=True)
        if not target.public and not api.model_info(target.repository).private:
            detail = f"{target.repository} is there already and everybody can read it: allow that, or name another"
            raise FerretError("hub.conflict", detail)
        if target.branch is not None:
            api.create_branch(target.repository, branch=target.branch, exist_ok=True)


def push(folder: Path, target: Target, manifest: Mapping[str, Any]) -> HubUpload:
    """Commits the checkpoint in ``folder``, which has this ``manifest``, and the files that an export adds to it.

    Nothing else in the folder is sent. The same commit deletes weights of another model from the repository.
    """
    about = f"{manifest['experiment']}, round {manifest['round']}: model {manifest['digest']}"
    with _told(target):
        from huggingface_hub import HfApi

        done = HfApi().upload_folder(
            repo_id=target.repository,
            folder_path=folder,
            revision=target.branch,
            commit_message=about,
            allow_patterns=[*manifest["files"], *ADDED, MANIFEST],
            delete_patterns=[f"*{WEIGHTS}", f"*{WEIGHTS}.index.json"],
        )
    return HubUpload(done.repo_url.url, done.oid)


@contextmanager
def _told(target: Target) -> Generator[None]:
    """Converts exceptions of the hub's library in the ``with`` block to errors with a remedy."""
    try:
        yield
    except FerretError:
        raise
    except ImportError as error:
        raise FerretError("dependency.missing", f"{error.name} is not installed: {EXTRA}") from error
    except Exception as error:  # the library does not wrap the exceptions of its dependencies
        raise _translated(target.repository, error) from error


def _translated(repository: str, error: Exception) -> FerretError:
    from huggingface_hub import errors

    why = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
    match error:
        case errors.OfflineModeIsEnabled():
            return FerretError("hub.unreachable", "HF_HUB_OFFLINE is set: unset it to push, and run the command again")
        case errors.HFValidationError():
            return FerretError.of_field("request.invalid", "push", repository, "must be OWNER/NAME, as on the hub")
        case errors.HfHubHTTPError():
            return _answered(repository, error.response.status_code, why)
        case _:
            return FerretError("hub.unreachable", f"the hub does not take {repository} ({why}): {AGAIN}")


def _answered(repository: str, status: int, why: str) -> FerretError:
    match status:
        case 401:
            return FerretError("hub.refused", f"the hub does not know the token: {TOKENS}")
        case 403 | 404:
            detail = f"the token may not write to {repository} ({why}): name a repository that you own, or {TOKENS}"
            return FerretError("hub.refused", detail)
        case 409 | 412:
            return FerretError("hub.conflict", f"somebody else changes {repository} just now ({why}): {AGAIN}")
        case _:
            return FerretError("hub.unreachable", f"the hub answered {status} about {repository} ({why}): {AGAIN}")
