from __future__ import annotations

import pytest
from rouge_score.rouge_scorer import RougeScorer

from ferret_core.evaluation.rouge import rouge_l, unicode_tokens


def test_latin_text_scores_as_the_package_scores_it() -> None:
    answer, reference = "The naïve cat sat on a mat.", "A naïve cat sat_there, on the mat!"
    expected = RougeScorer(["rougeL"]).score(reference, answer)["rougeL"].fmeasure
    assert 0 < expected < 1
    assert rouge_l([answer], [[reference]]) == [100 * expected]


def test_by_hand() -> None:
    """A common subsequence of 3 in 4 and 6 words: F = 2·(3/4)·(3/6) / (3/4 + 3/6) = 0.6."""
    assert rouge_l(["a b c x", "q"], [["a q b r c s"], ["q"]]) == pytest.approx([60, 100])


def test_of_several_accepted_answers_the_best_counts() -> None:
    assert rouge_l(["a b", "c"], [["x", "a b", "a"], ["c d", "e"]]) == pytest.approx([100, 100 * 2 / 3])


@pytest.mark.parametrize(
    "text",
    [
        "你好，世界。",
        "こんにちは世界",
        "안녕하세요 세계",
        "Привет, мир!",
        "שלום עולם",
        "नमस्ते दुनिया",
        "สวัสดีชาวโลก",
        "Γειά σου",
    ],
)
def test_identical_text_of_any_script_scores_100(text: str) -> None:
    assert rouge_l([text, "nothing like it"], [[text], [text]]) == [100, 0]


def test_half_the_characters_score_half() -> None:
    assert rouge_l(["我爱北京"], [["我爱上海"]]) == pytest.approx([50])


def test_the_reference_alone_decides() -> None:
    """Were the answer to decide, a model that answers in Chinese would change how it is measured."""
    assert rouge_l(["naïve 你"], [["naïve"]]) == [100]
    assert rouge_l(["naïve"], [["naïve 你"]]) == pytest.approx([100 * 2 / 3])


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The cat's 2 hats_off, OK?", ["the", "cat", "s", "2", "hats", "off", "ok"]),
        ("ＡＢＣ１２", ["abc12"]),
        ("用Python写abc", ["用", "python", "写", "abc"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("東京タワー", ["東", "京", "タ", "ワ", "ー"]),
        ("été", ["été"]),
        ("— … !", []),
    ],
)
def test_unicode_tokens(text: str, tokens: list[str]) -> None:
    assert unicode_tokens(text) == tokens
