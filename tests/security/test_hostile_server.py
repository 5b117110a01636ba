"""A participant joins a server that lies: it ends with a typed error, and nothing outside its home has changed."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ferret_core.ledger.record import LedgerRecord
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import LONGEST_DETAIL, FerretError
from ferret_core.protocol.wire import encode
from ferret_core.replica.replica import Replica
from ferret_sdk import Participant, Service
from ferret_sdk.http import retry, transport
from ferret_sdk.http.safe_paths import DISK_MARGIN, checkpoint_file
from ferret_sdk.http.transport import Transport
from ferret_sdk.participant import assignment_poll, receipts, round_loop
from ferret_sdk.participant.egress_log import SentLog
from ferret_sdk.participant.paths import ParticipantPaths
from ferret_sdk.service.run import Run
from tests.refusals import refused
from tests.security.hostile import ASSIGNMENT, EXPERIMENT, PARTICIPANT, HostileServer, body_reply, json_reply

pytestmark = pytest.mark.usefixtures("impatient")

ARTIFACTS = f"/experiments/{EXPERIMENT}/artifacts"
CONTRIBUTION = f"{ASSIGNMENT}/contribution"
LEDGER = f"/experiments/{EXPERIMENT}/ledger"


class Base(NamedTuple):
    """The base model that is served: where its files lie, the experiment about it, and its digest."""

    folder: Path
    spec: dict[str, Any]
    digest: str


@pytest.fixture(scope="session")
def base(tiny_model_dir: Path, toy_spec: Callable[..., Any]) -> Base:
    spec = toy_spec(participants={"edge": 1}, model={"source": "/nowhere/on/this/machine"})
    return Base(tiny_model_dir, spec.model_dump(mode="json"), Replica.load(spec, tiny_model_dir).digest)


@pytest.fixture
def server(base: Base) -> Iterator[HostileServer]:
    with HostileServer(base.folder, base.spec, base.digest).running() as running:
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def tree(folder: Path, without: Path) -> dict[Path, bytes]:
    """Every file below ``folder`` with its content, but for those below ``without``."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_relative_to(without))
    return {path: path.read_bytes() for path in files}


@pytest.fixture
def join(server: HostileServer, home: Path, tmp_path: Path, toy_data: tuple[Path, Path]) -> Callable[[], FerretError]:
    """Takes part until it fails, and gives the error; whatever it was, only the home has changed."""

    def run() -> FerretError:
        (tmp_path / "precious").mkdir(exist_ok=True)
        (tmp_path / "precious" / "file").write_text("kept")
        before = tree(tmp_path, home)
        with pytest.raises(FerretError) as raised:
            Participant.enrol(server.url, "a-code", "clinic", home).run(toy_data[0], give_up_after=0)
        assert tree(tmp_path, home) == before
        return raised.value

    return run


@pytest.fixture
def reported(server: HostileServer, home: Path, toy_data: tuple[Path, Path]) -> Callable[[], list[FerretError | None]]:
    """Takes part until the server ends it, once it has got a failure or a contribution; the error of each round."""

    def run() -> list[FerretError | None]:
        server.replies[f"{ASSIGNMENT}/failure"] = server.ends("cancelled")
        server.replies.setdefault(CONTRIBUTION, server.ends("completed"))
        reports = []
        Participant.enrol(server.url, "a-code", "clinic", home).run(toy_data[0], reports.append, give_up_after=0)
        return [report.error for report in reports]

    return run


ID = "exp_0123456789abcde"
ENROLMENTS: dict[str, dict[str, Any]] = {
    "an absolute experiment": {"experiment": "/tmp/stolen"},
    "a traversal in the experiment": {"experiment": "../../stolen"},
    "an experiment with a line end": {"experiment": f"{ID}f\n"},
    "an experiment with NUL": {"experiment": f"{ID}\0"},
    "an experiment in upper case": {"experiment": f"{ID}F"},
    "another thing's id": {"experiment": "par_0123456789abcdef"},
    "a traversal in the participant": {"participant": "../../../stolen"},
    "an absolute participant": {"participant": "/tmp/stolen"},
    "a participant that is no text": {"participant": ["par_0123456789abcdef"]},
    "a traversal in the name": {"name": "../clinic"},
    "an escape in the name": {"name": "\x1b[2Jclinic"},
    "a token that adds a header": {"token": "t\r\nX-Evil: 1"},
    "a token that no header can hold": {"token": "\u202e"},
    "an endless token": {"token": "t" * 100_000},
    "no token": {"token": None},
}


@pytest.mark.parametrize("lie", ENROLMENTS.values(), ids=ENROLMENTS.keys())
def test_an_enrolment_that_is_none_leaves_nothing_but_the_log_of_the_request(server, join, home, lie) -> None:
    server.enrolled |= lie
    error = join()
    assert error.code == "server.unexpected"
    assert [found.field for found in error.errors] == [f"enrolled.{next(iter(lie))}"]
    assert {path.name for path in home.rglob("*")} <= {"identity.key", "participants", "sent.jsonl", "sent.lock"}


def _set(**members: Any) -> Callable[[HostileServer], None]:
    return lambda server: server.experiment.update(members)


def _task(**members: Any) -> Callable[[HostileServer], None]:
    return lambda server: server.task.update(members)


def _lease(**members: Any) -> Callable[[HostileServer], None]:
    return lambda server: server.poll["assignment"].update(members)


def _spec(**members: Any) -> Callable[[HostileServer], None]:
    return lambda server: server.experiment["spec"].update(members)


def _file(name: str, data: bytes = b"{}", **lies: Any) -> Callable[[HostileServer], None]:
    return lambda server: server.offer(name, data, **lies)


def _config(name: str, members: dict[str, Any]) -> Callable[[HostileServer], None]:
    """The base model's own file ``name`` with further members."""
    return lambda server: server.replace(name, lambda document: document | members)


def _reply(path: str, reply: Any) -> Callable[[HostileServer], None]:
    return lambda server: server.replies.update({path: reply})


ANSWERS: dict[str, Callable[[HostileServer], None]] = {
    "a digest that is a path": _set(base_digest="../" * 20 + "e" * 4),
    "a digest in upper case": _task(base_digest="A" * 64),
    "a negative round": _set(round=-1),
    "more rounds than there can be": _task(round=10**30),
    "a seed out of range": _task(data_seed=2**64),
    "a negative seed": _task(seed=-1),
    "a population out of range": _task(population=2**31),
    "a population of text": _task(population="many"),
    "another experiment's work": _task(experiment="exp_ffffffffffffffff"),
    "another participant's work": _task(participant="other"),
    "an assignment that is a path": _lease(id="../../experiments"),
    "a fence out of range": _lease(fence=2**40),
    "an endless lease": _lease(lease_seconds=1e300),
    "a lease of no time": _lease(lease_seconds=0),
    "a pause that is no number": lambda server: server.poll.update(retry_after_seconds=float("nan")),
    "a pause of text": lambda server: server.poll.update(retry_after_seconds="soon"),
    "a state that there is not": lambda server: server.poll.update(experiment_state="haunted"),
    "a list for a document": lambda server: setattr(server, "poll", [server.poll]),
    "a document for a list": _reply(ARTIFACTS, json_reply({"items": {"id": 1}})),
    "artifacts that are numbers": _reply(ARTIFACTS, json_reply({"items": [1, 2, 3]})),
    "no JSON": _reply("/participant/assignment", body_reply(b"<html>")),
    "deep JSON": _reply(f"/experiments/{EXPERIMENT}", body_reply(b"[" * 200_000)),
    "a number of 5,000 digits": _reply("/participant/assignment", body_reply(b'{"fence": ' + b"9" * 5000 + b"}")),
    "a file in a folder": _file("sub/config.json"),
    "a file in a folder of Windows": _file("sub\\config.json"),
    "a traversal in a file's name": _file("../../../precious/file"),
    "an absolute file": _file("/tmp/stolen.json"),
    "NUL in a file's name": _file("config\0.json"),
    "a line end in a file's name": _file("config.json\n"),
    "a hidden file": _file(".bashrc"),
    "a file without a name": _file(""),
    "a program": _file("modeling_llama.py"),
    "a pickle": _file("pytorch_model.bin"),
    "a very long name": _file("x" * 300 + ".json"),
    "a negative size": _file("more.json", size=-1),
    "a size out of range": _file("more.json", size=2**70),
    "JSON too long to parse": _file("more.json", size=1 << 27),
    "a file's digest that is none": _file("more.json", digest="0" * 63),
    "a file's id that is a path": _file("more.json", id="../updates/1"),
    "adapters of a model on this disk": _file("adapter_config.json", b'{"base_model_name_or_path": "/private"}'),
    "a shard on this disk": _file(
        "model.safetensors.index.json", b'{"weight_map": {"a": "../../private.safetensors"}}'
    ),
    "a vocabulary on this disk": _config("tokenizer_config.json", {"vocab_file": "/etc/passwd"}),
    "code of the hub": _config("config.json", {"_attn_implementation": "evil/kernels"}),
    "nested code of the hub": _config("config.json", {"text_config": {"attn_implementation": "evil/kernels"}}),
    "a compressed answer": _reply(
        f"/experiments/{EXPERIMENT}", body_reply(gzip.compress(b" " * 10_000_000), Content_Encoding="gzip")
    ),
    "a specification that is none": _set(spec={}),
    "a specification with a hostile number": _spec(rounds=10**12),
    "a specification with an unknown field": _spec(execute="rm"),
    "a round that goes nowhere": lambda server: server.task.update(round=2) or server.ledger.append({"record": {}}),
}


@pytest.mark.parametrize("lie", ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_that_is_none_ends_the_participation(server, join, lie) -> None:
    lie(server)
    error = join()
    assert error.code == "server.unexpected", error.detail
    assert len(error.detail) <= LONGEST_DETAIL


def test_the_honest_answers_are_taken(reported) -> None:
    """What the other tests change is all that is wrong with them: here a whole round is done."""
    assert reported() == [None]


def ends_after(server: HostileServer, record: LedgerRecord) -> None:
    """Acknowledges the contribution, and ends with a ledger of that one record."""

    def end(handler: Any) -> None:
        server.commit(record, UPDATE)
        server.ends("completed")(handler)

    server.replies[CONTRIBUTION] = end


def test_a_contribution_that_is_acknowledged_and_left_out_is_told(server, home, toy_data, record, caplog) -> None:
    ends_after(server, record.model_copy(update={"contributions": (("other", "3" * 64),), "signatures": ()}))
    participant = Participant.enrol(server.url, "a-code", "clinic", home)
    assert participant.run(toy_data[0], give_up_after=0) == "completed"
    assert "round 1 was committed without this site's contribution" in caplog.text
    ((digest, outcome),) = receipts.outcomes(home).items()
    assert outcome.state == "left out"
    assert digest in {sent.contribution for sent in SentLog(home).read()}


def test_a_contribution_in_the_sites_name_that_it_did_not_sign_ends_the_participation(server, join, record) -> None:
    ends_after(server, record)
    error = join()
    assert error.code == "ledger.broken"
    assert "not signed with this site's key" in error.detail


def test_a_server_that_does_not_show_its_last_record_is_asked_again_by_the_next_run(
    server, home, toy_data, record, caplog
) -> None:
    ends_after(server, record.model_copy(update={"contributions": (("other", "3" * 64),), "signatures": ()}))
    server.replies[LEDGER] = json_reply({"code": "experiment.not_found", "detail": "no such experiment"}, 404)
    participant = Participant.enrol(server.url, "a-code", "clinic", home)
    assert participant.run(toy_data[0], give_up_after=0) == "completed"
    assert "the last receipt is missing, no such experiment" in caplog.text
    assert [outcome.state for outcome in receipts.outcomes(home).values()] == ["acknowledged"]
    del server.replies[LEDGER]
    again = Participant.enrol(server.url, "a-code", "clinic", home)
    assert again.run(toy_data[0], give_up_after=0) == "completed"
    assert [outcome.state for outcome in receipts.outcomes(home).values()] == ["left out"]


@pytest.mark.parametrize("answer", [{}, {"digest": "3" * 64}, "<html>", {"digest": "../x"}])
def test_only_an_answer_about_the_contribution_removes_it_from_the_spool(server, join, home, answer) -> None:
    server.replies[CONTRIBUTION] = json_reply(answer)
    assert join().code == "server.unexpected"
    assert len(list(home.glob("participants/*/*-upload/upload.json"))) == 1


@pytest.mark.parametrize("algorithm", ["evil", "_base", "configs", "../ferret", "os"])
def test_an_algorithm_that_there_is_not_is_refused(server, reported, algorithm) -> None:
    """The server is told, and the participant goes on asking: here until there is nobody to ask."""
    server.experiment["spec"]["algorithm"] = {"name": algorithm}
    assert [error.code for error in reported()] == ["spec.invalid"]


def test_the_paths_of_the_specification_are_not_looked_at(server, reported, tmp_path) -> None:
    """The server's model and data are named after files of the participant's; none of them is opened."""
    secret = tmp_path / "secret.jsonl"
    secret.write_text('{"instruction": "secret", "output": "secret"}\n')
    server.experiment["spec"] |= {
        "model": {"source": str(secret.parent), "revision": None, "dtype": "float32"},
        "dataset": {"name": "jsonl", "train": str(secret), "test": str(secret)},
    }
    assert reported() == [None]
    assert secret.stat().st_atime_ns <= secret.stat().st_mtime_ns


def test_a_link_out_of_the_home_is_not_followed(server, join, home, tmp_path) -> None:
    """Somebody else on the machine has put it there."""
    (tmp_path / "precious").mkdir()
    folder = home / "participants" / EXPERIMENT
    folder.mkdir(parents=True)
    (folder / "base").symlink_to(tmp_path / "precious")
    error = join()
    assert (error.code, error.errors[0].message.split(":")[0]) == ("server.unexpected", f"leads out of {home}")


def test_a_linked_file_is_not_written_through(server, join, home, tmp_path) -> None:
    base = home / "participants" / EXPERIMENT / "base"
    base.mkdir(parents=True)
    for name in ("config.json", "config.json.part"):
        (base / name).symlink_to(tmp_path / "precious" / "file")
        assert join().code == "server.unexpected"
        (base / name).unlink()


def test_a_home_that_is_a_link_itself_is_the_owners_choice(tmp_path) -> None:
    (tmp_path / "large-disk").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "large-disk")
    places = ParticipantPaths(tmp_path / "home", EXPERIMENT, PARTICIPANT)
    assert places.base == tmp_path / "large-disk" / "participants" / EXPERIMENT / "base"


def test_an_endless_download_stops_at_the_announced_size(server, join, home) -> None:
    (id,) = (file["id"] for file in server.artifacts if file["name"] == "config.json")
    server.replies[f"{ARTIFACTS}/{id}"] = server.endless
    assert join().code == "storage.corrupt"
    assert server.asked.count(f"{ARTIFACTS}/{id}") == round_loop.MOST_DAMAGED
    assert sum(path.stat().st_size for path in home.rglob("*")) < 1_000_000
    assert server.sent < round_loop.MOST_DAMAGED * 8_000_000  # what the sockets held


def test_a_file_that_lies_about_its_digest_is_not_kept(server, join, home) -> None:
    server.offer("vocab.json", b"{}", digest=digest_bytes(b"other"))
    assert join().code == "storage.corrupt"
    assert not list(home.rglob("vocab.json*"))


def test_more_than_the_disk_holds_is_not_begun(server, reported) -> None:
    server.offer("model-00002.safetensors", b"", size=2**62)
    (error,) = reported()
    assert error.code == "storage.full"
    assert str(DISK_MARGIN) in error.detail
    assert not [path for path in server.asked if path.startswith(f"{ARTIFACTS}/")]


def test_an_endless_answer_is_not_read_to_its_end(server, join, monkeypatch) -> None:
    monkeypatch.setattr(transport, "MAX_ANSWER_BYTES", 1 << 20)
    monkeypatch.setitem(Transport.request.__kwdefaults__, "at_most", 1 << 20)
    server.replies[f"/experiments/{EXPERIMENT}"] = server.endless
    assert join().code == "server.unexpected"
    assert server.sent < 16_000_000


def test_an_endless_refusal_is_cut(server) -> None:
    def refuse(handler: Any) -> None:
        handler.send_response_only = lambda *arguments: None
        handler.wfile.write(b"HTTP/1.0 409 Conflict\r\n")
        server.endless(handler)

    server.replies["/info"] = refuse
    with pytest.raises(FerretError) as raised:
        Service(server.url).info()
    assert (raised.value.code, len(raised.value.detail) < 500) == ("experiment.conflict", True)
    assert server.sent < 16_000_000


def test_a_long_refusal_is_shortened_and_its_controls_go(server) -> None:
    problem = {"code": ["experiment.conflict"], "detail": "\x1b]0;owned\x07" + "x" * 10_000, "errors": "none"}
    server.replies["/info"] = json_reply(problem, 409)
    with pytest.raises(FerretError) as raised:
        Service(server.url).info()
    assert raised.value.detail.startswith("]0;ownedx")
    assert len(raised.value.detail) <= LONGEST_DETAIL


def test_an_endless_event_is_not_kept(server) -> None:
    server.replies[f"/experiments/{EXPERIMENT}/events/stream"] = server.endless
    run = Service(server.url).experiment(EXPERIMENT)
    with refused("server.unexpected"):
        next(run.events())
    assert server.sent < 16_000_000


def test_an_endless_list_ends(server) -> None:
    server.replies[f"/experiments/{EXPERIMENT}/rounds"] = json_reply({"items": [], "next_cursor": "again"})
    with refused("server.unexpected", "next_cursor"):
        list(Service(server.url).experiment(EXPERIMENT).rounds())


@pytest.mark.parametrize("where", ["http://127.0.0.1:1/stolen", "https://ferret.example.org/", "file:///etc/passwd"])
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_redirect_is_followed(server, join, where, status) -> None:
    server.replies["/participant/assignment"] = body_reply(b"", status, Location=where)
    error = join()
    assert error.code == "server.unexpected"
    assert where in error.detail


def test_a_long_pause_is_not_waited_for(server, join, monkeypatch) -> None:
    """The participant asks again after at most five minutes, and is told of a server that is away within one each."""
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    server.poll |= {"retry_after_seconds": 1e9, "assignment": None}

    def away(handler: Any) -> None:
        body_reply(b"", 503, Retry_After="1000000000")(handler)

    def first_idle(handler: Any) -> None:
        server.replies["/participant/assignment"] = away
        json_reply(server.poll)(handler)

    server.replies["/participant/assignment"] = first_idle
    assert join().code == "server.not_ready"
    assert waited == [assignment_poll.LONGEST_PAUSE] + [retry.LONGEST_RETRY_AFTER] * (retry.ATTEMPTS - 1)


@pytest.fixture
def record(base: Base) -> LedgerRecord:
    """A round that its record says led to another model."""
    update = encode({}, {"round": 1})
    return LedgerRecord(
        version=1,
        experiment=EXPERIMENT,
        spec="1" * 64,
        round=1,
        base_digest=base.digest,
        digest="2" * 64,
        update=digest_bytes(update),
        contributions=(("clinic", "3" * 64),),
        previous="",
        clipped=(),
        refused=(),
        signatures=(),
        halvings=0,
    )


UPDATE = encode({}, {"round": 1})
LEDGERS: dict[str, dict[str, Any]] = {
    "an update longer than any": {"update_size": 2**50},
    "an update longer than announced": {"update_size": 3},
    "a negative size": {"update_size": -1},
    "a hash that is none": {"hash": "../../hash"},
    "a record that is none": {"record": {"round": 1}},
}


@pytest.mark.parametrize("lies", LEDGERS.values(), ids=LEDGERS.keys())
def test_a_ledger_that_lies_ends_the_participation(server, join, record, lies) -> None:
    server.commit(record, UPDATE, **lies)
    assert join().code == "server.unexpected"


@pytest.mark.parametrize(
    "lie", [{"contributions": [["../clinic", "3" * 64]]}, {"contributions": [["clinic", "../memory"]]}]
)
def test_a_record_cannot_name_a_file_of_the_memory_elsewhere(server, join, record, lie) -> None:
    server.commit(record, UPDATE)
    server.ledger[0]["record"] |= lie
    assert join().code == "server.unexpected"


def test_a_ledger_of_other_bytes_is_reported_and_moves_nothing(server, reported, record) -> None:
    server.commit(record, UPDATE)
    assert [error.code for error in reported()] == ["ledger.broken"]


@pytest.mark.parametrize("url", ["http://ferret.example.org", "http://10.0.0.7:8765", "http://127.0.0.1@evil.example"])
def test_plain_http_leaves_this_machine_only_if_asked_to(url, home, monkeypatch) -> None:
    for attempt in (
        lambda: Service(url, "token"),
        lambda: Participant.enrol(url, "code", "clinic", home),
        lambda: Transport(url),
    ):
        with refused("request.invalid", "--insecure-http"):
            attempt()
    assert Service(url, "token", insecure_http=True).url == url
    monkeypatch.setenv("FERRET_INSECURE_HTTP", "1")
    assert Service(url, "token").url == url
    assert Service("https://ferret.example.org", "token").url == "https://ferret.example.org"


def test_an_exported_checkpoint_stays_in_its_folder(server, tmp_path) -> None:
    server.offer("../escaped.json", b"{}")
    with refused("server.unexpected", "not the name of a checkpoint"):
        Run(Transport(server.url), Service(server.url).experiment(EXPERIMENT).experiment).export(tmp_path / "out")
    assert not (tmp_path / "escaped.json").exists()


@pytest.mark.parametrize("name", ["config.json", "model-00001-of-00002.safetensors", "merges.txt", "tokenizer.model"])
def test_the_files_of_checkpoints_have_names(tmp_path, name) -> None:
    assert checkpoint_file(tmp_path, name) == tmp_path / name
