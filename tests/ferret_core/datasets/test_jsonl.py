from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from ferret_core.datasets.base import Example, Turn
from ferret_core.datasets.jsonl import Config, Dataset
from ferret_core.protocol.errors import FerretError
from tests.refusals import refused

GOOD = {"instruction": "Add.", "input": "2 2", "output": "4", "label": "maths"}


def lines(count: int) -> list[dict[str, str]]:
    return [{**GOOD, "input": f"{i} {i}", "output": str(2 * i)} for i in range(count)]


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(path)


def said(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def failure(path: Path, *, row: dict[str, Any] | None = None, **options: Any) -> FerretError:
    if row is not None:
        write(path, [row])
    with refused("dataset.invalid", field="dataset.train") as caught:
        Dataset(Config(train=str(path), test_share=0, **options)).train()
    assert str(path) in caught.value.detail
    return caught.value


def test_reads_both_files_in_order(tmp_path: Path) -> None:
    dataset = Dataset(Config(train=write(tmp_path / "a", lines(3)), test=write(tmp_path / "b", [GOOD])))
    assert [example.output for example in dataset.train()] == ["0", "2", "4"]
    assert dataset.test() == [Example("Add.", "2 2", "4", "maths")]


def test_reads_gzip_blank_lines_a_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl.gz"
    text = '\ufeff{"instruction": "Grüße", "output": "你好"}\r\n\r\n   \n{"instruction": "b", "output": ""}'
    path.write_bytes(gzip.compress(text.encode()))
    dataset = Dataset(Config(train=str(path), test_share=0))
    assert dataset.train() == [Example("Grüße", "", "你好"), Example("b", "", "")]


def test_field_names_can_be_set(tmp_path: Path) -> None:
    rows = [{"q": "Why?", "context": None, "a": "So.", "kind": "x"}, {"q": "Who?", "a": "I."}]
    config = Config(
        train=write(tmp_path / "a", rows), test_share=0, instruction="q", input="context", output="a", label="kind"
    )
    assert Dataset(config).train() == [Example("Why?", "", "So.", "x"), Example("Who?", "", "I.", "")]


def test_a_conversation_is_its_last_answer_after_all_earlier_messages(tmp_path: Path) -> None:
    rows = [
        {"messages": [said("user", "Hi"), said("assistant", "Hello"), said("user", "Bye"), said("assistant", "So")]}
    ]
    rows += [{"messages": [said("system", "Be brief"), said("user", "Hi"), said("assistant", "Yes")], "label": "x"}]
    dataset = Dataset(Config(train=write(tmp_path / "a", [*rows, GOOD]), test_share=0))
    first, second, third = dataset.train()
    assert first == Example("Bye", "", "So", turns=(Turn("user", "Hi"), Turn("assistant", "Hello")))
    assert second == Example("Hi", "", "Yes", "x", turns=(Turn("system", "Be brief"),))
    assert third == Example("Add.", "2 2", "4", "maths")


def test_earlier_messages_decide_who_is_held_out(tmp_path: Path) -> None:
    rows = [{"messages": [said("system", str(i)), said("user", "Hi"), said("assistant", "Yes")]} for i in range(20)]
    dataset = Dataset(Config(train=write(tmp_path / "a", rows), test_share=0.25))
    assert len(set(dataset.test())) == 5
    assert set(dataset.test()).isdisjoint(dataset.train())


@pytest.mark.parametrize(
    ("messages", "place", "reason"),
    [
        ([], "line 1", "is an empty list"),
        ("Hi", "line 1", "is a text, not a list"),
        ([("user", "Hi")], "line 1: field 'messages'", "does not end with"),
        ([("assistant", "Hello")], "line 1: field 'messages'", "does not end with"),
        ([("user", "SECRET"), ("assistant", " \n")], "line 1, messages[1]: field 'content'", "is empty"),
        ([("SECRET", "Hi"), ("assistant", "a")], "line 1, messages[0]: field 'role'", "is not system, user or"),
        ([("user", "Hi"), ("system", "SECRET"), ("assistant", "a")], "field 'messages[1]'", "only the first"),
        ([("user", ["SECRET"]), ("assistant", "a")], "line 1, messages[0]: field 'content'", "is a list, not a text"),
    ],
)
def test_a_conversation_that_cannot_be_trained_is_refused_by_line(
    tmp_path: Path, messages: Any, place: str, reason: str
) -> None:
    given = messages if isinstance(messages, str) else [said(*message) for message in messages]
    error = failure(tmp_path / "a", row={"messages": given})
    assert place in error.detail
    assert reason in error.detail
    assert "SECRET" not in error.detail


def test_a_line_is_an_instruction_or_a_conversation(tmp_path: Path) -> None:
    both = {**GOOD, "messages": [said("user", "Hi"), said("assistant", "Hello")]}
    assert "field 'messages' and field 'instruction' are both given" in failure(tmp_path / "a", row=both).detail


def test_a_list_of_answers_is_one_to_train_on_and_others_to_accept(tmp_path: Path) -> None:
    path = write(tmp_path / "a", [{**GOOD, "output": ["4", "four", "2²"]}, {**GOOD, "output": ["5"]}])
    (first, second) = Dataset(Config(train=path, test_share=0)).train()
    assert (first.output, first.accepted) == ("4", ("four", "2²"))
    assert (second.output, second.accepted) == ("5", ())


def test_what_else_is_accepted_does_not_decide_who_is_held_out(tmp_path: Path) -> None:
    line = Dataset(Config(train=write(tmp_path / "a", lines(30))))
    more = Dataset(Config(train=write(tmp_path / "b", [{**row, "output": [row["output"], "x"]} for row in lines(30)])))
    assert [example.input for example in line.test()] == [example.input for example in more.test()]


def test_a_misspelt_optional_field_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "a", [GOOD])
    assert "no example has the field 'contxt'" in failure(tmp_path / "a", input="contxt").detail
    assert "no example has the field 'categry'" in failure(tmp_path / "a", label="categry").detail


def test_limits_take_the_first_and_read_no_further(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text(json.dumps(GOOD) + "\n" + json.dumps({**GOOD, "output": "5"}) + "\n{broken\n")
    dataset = Dataset(Config(train=str(path), test=str(path), train_limit=2, test_limit=1))
    assert [example.output for example in dataset.train()] == ["4", "5"]
    assert [example.output for example in dataset.test()] == ["4"]


def test_held_out_examples_do_not_depend_on_the_order_of_lines(tmp_path: Path) -> None:
    rows = lines(50)
    forward = Dataset(Config(train=write(tmp_path / "a", rows), test_share=0.2))
    backward = Dataset(Config(train=write(tmp_path / "b", rows[::-1]), test_share=0.2))
    assert len(forward.test()) == 10
    assert set(forward.test()) == set(backward.test())
    assert set(forward.train()) == {Example(*row.values()) for row in rows} - set(forward.test())
    assert forward.train() == backward.train()[::-1]


def test_equal_texts_are_held_out_together(tmp_path: Path) -> None:
    dataset = Dataset(Config(train=write(tmp_path / "a", lines(20) * 3), test_share=0.25))
    assert (len(dataset.test()), len(set(dataset.test()))) == (15, 5)
    assert set(dataset.test()).isdisjoint(dataset.train())


def test_limits_hold_after_the_split(tmp_path: Path) -> None:
    config = Config(train=write(tmp_path / "a", lines(20)), test_share=0.5, train_limit=3, test_limit=2)
    assert (len(Dataset(config).train()), len(Dataset(config).test())) == (3, 2)


def test_something_is_left_on_both_sides(tmp_path: Path) -> None:
    path = write(tmp_path / "a", lines(2))
    for share in (0.001, 0.999):
        dataset = Dataset(Config(train=path, test_share=share))
        assert len(dataset.train()) == len(dataset.test()) == 1


def test_one_line_cannot_be_split(tmp_path: Path) -> None:
    with refused("dataset.invalid", "has no two different examples"):
        Dataset(Config(train=write(tmp_path / "a", lines(1)))).train()


def test_a_share_of_nothing_holds_out_nothing(tmp_path: Path) -> None:
    dataset = Dataset(Config(train=write(tmp_path / "a", lines(3)), test_share=0))
    assert len(dataset.train()) == 3
    with refused("dataset.invalid", "test_share = 0", "dataset.test"):
        dataset.test()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"instruction": "a", "outp', "line 2 is not valid JSON (Unterminated string"),
        (b'["a", "b"]', "line 2 is a list, not an object"),
        (b"null", "line 2 is null"),
        (b'{"instruction": "a", "answer": "b"}', "line 2: field 'output' is missing (the object has 2 others"),
        (b"{}", "line 2: field 'instruction' is missing (the object has 0 others)"),
        (b'{"instruction": 7, "output": "b"}', "line 2: field 'instruction' is a number, not a text"),
        (b'{"instruction": "a", "output": null}', "line 2: field 'output' is null, not a text"),
        (b'{"instruction": "a", "output": []}', "line 2: field 'output' is an empty list"),
        (b'{"instruction": "a", "output": ["b", 7]}', "line 2: field 'output[1]' is a number, not a text"),
        (b'{"instruction": "a", "output": "b", "label": true}', "line 2: field 'label' is a boolean, not a text"),
        (b'{"instruction": "a", "output": "b\xff"}', "line 2 is not UTF-8 at byte 34"),
        (b'{"instruction": "\\ud83d", "output": "b"}', "line 2: field 'instruction' holds half a surrogate pair"),
        (b"[" * 200_000, "line 2 cannot be read as JSON (nested too deeply"),
        (b'{"instruction": ' + b"1" * 5000 + b"}", "line 2 cannot be read as JSON (a number with too many digits"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, raw: bytes, message: str) -> None:
    path = tmp_path / "data.jsonl"
    path.write_bytes(json.dumps(GOOD).encode() + b"\n" + raw + b"\n")
    assert message in failure(path).detail


def test_a_missing_file_a_folder_and_an_empty_file_are_named(tmp_path: Path) -> None:
    assert "cannot be read (No such file or directory)" in failure(tmp_path / "none.jsonl").detail
    assert "is a folder, not a file" in failure(tmp_path).detail
    with refused("dataset.invalid", "a null byte"):
        Dataset(Config(train="a\0b", test_share=0)).train()
    (tmp_path / "empty").write_text("\n\n")
    assert "holds no examples" in failure(tmp_path / "empty").detail


def test_a_broken_gzip_file_is_named(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(json.dumps(row).encode() + b"\n" for row in lines(1000)))
    path = tmp_path / "data.jsonl.gz"
    path.write_bytes(whole[: len(whole) // 2])
    assert "ended before the end-of-stream marker" in failure(path).detail
    path.write_bytes(whole[:100] + b"\0" * 500 + whole[600:])
    assert "cannot be read" in failure(path).detail
    path.write_text("plain")
    assert "Not a gzipped file" in failure(path).detail


def test_a_field_of_the_test_file_is_named(tmp_path: Path) -> None:
    good, bad = write(tmp_path / "a", [GOOD]), write(tmp_path / "b", [{"instruction": "x"}])
    with pytest.raises(FerretError) as caught:
        Dataset(Config(train=good, test=bad)).test()
    assert caught.value.errors[0].field == "dataset.test"


def test_units_come_from_a_field_that_every_training_record_has(tmp_path: Path) -> None:
    rows = [{**GOOD, "patient": 7}, {**GOOD, "patient": "b"}]
    config = Config(train=write(tmp_path / "a", rows), test=write(tmp_path / "b", [GOOD]))
    assert [example.unit for example in Dataset(config).train()] == ["", ""]
    dataset = Dataset(config).with_units("patient")
    assert [example.unit for example in dataset.train()] == ["7", "b"]
    assert dataset.test()[0].unit == ""
    for wrong in ({}, {"patient": None}, {"patient": ""}, {"patient": 1.5}, {"patient": True}):
        write(tmp_path / "a", [rows[0], {**GOOD, **wrong}])
        with refused("privacy.unit_missing", "line 2", "patient", field="privacy.unit"):
            dataset.train()
