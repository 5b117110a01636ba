from __future__ import annotations

from ferret_cli.describe import cost_rows, label_rows
from ferret_sdk.schemas import Round


def a_round(number: int, **metrics: float) -> Round:
    return Round.model_validate(
        {"number": number, "attempt": 1, "state": "committed", "base_digest": "", "participants": 4, "accepted": 2}
        | {"rejected": 2, "metrics": metrics}
    )


def test_costs_are_medians_for_one_participant() -> None:
    rounds = [
        a_round(number, local_seconds=seconds, bytes_up=20_000, bytes_down=400, parameters_up=62_920)
        for number, seconds in enumerate((30.0, 2.0, 3.0), start=1)
    ]
    assert list(cost_rows(rounds)) == [
        ("local update", "3 s"),
        ("parameters sent each", "62,920"),
        ("sent each", "10.0 kB"),
        ("received each", "100 B"),
    ]


def test_labels_are_those_of_the_last_evaluated_round() -> None:
    first = {"eval_loss": 3.0, "eval_loss/b": 4.0, "eval_loss/a/c": 2.0, "rouge_l/b": 10.0}
    rounds = [a_round(1, **first), a_round(2, train_loss=2.0)]
    assert list(label_rows(rounds)) == [("a/c", "2.0000", None), ("b", "4.0000", "10.0")]
    assert list(label_rows([a_round(1, eval_loss=3.0)])) == []
