"""Expected figures were taken from the package ``rouge`` 1.0.1, which the paper's code calls; its 1e-8 is left out."""

from __future__ import annotations

import pytest

from ferret_core.evaluation.rouge import rouge_l_paper


@pytest.mark.parametrize(
    ("answer", "reference", "expected"),
    [
        ("a b c x", "a q b r c s", 60),
        ("the the the cat", "the cat", 100),  # a word counts once
        ("The cat sat.", "the cat sat, down", 2 / 7 * 100),  # case and punctuation count
        ("w1 w2 w6 w7 w8. w1 w3 w8 w9 w5", "w1 w2 w3 w4 w5", 2 * 4 / (8 + 5) * 100),  # the union over sentences
        ("a b", "b a", 50),  # one of two common subsequences
        ("b c. a", "a b c", 100),
        ("x. ", "x", 2 / 3 * 100),  # the blank after the full stop is an empty word
        ("", "a", 0),
        ("...", "a", 0),
        ("a", "", 0),
    ],
)
def test_it_scores_as_the_papers_code_does(answer: str, reference: str, expected: float) -> None:
    assert rouge_l_paper([answer], [reference]) == pytest.approx([expected])


def test_every_pair_has_its_own_score() -> None:
    assert rouge_l_paper(["a", "b"], ["a", "a"]) == [100, 0]
