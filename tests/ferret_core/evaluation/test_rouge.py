from __future__ import annotations

import pytest
from rouge_score.rouge_scorer import RougeScorer

from ferret_core.evaluation.rouge import rouge_l, unicode_tokens


def test_latin_text_scores_as_the_package_scores_it() -> None:
    answer, reference = "The naïve cat sat on a mat.", "A naïve cat sat_there, on the mat!"
    expected = RougeScorer(["rougeL"]).score(reference, answer)["rougeL"].fmeasure
    assert 0 < expected < 1
    assert rouge_l([answer], [[reference]]) == [100 * expected]


@pytest.mark.parametrize(
    ("answer", "accepted", "score"),
    [
        ("a b c x", ["a q b r c s"], 60),  # 3 in common of 4 and 6 words: 2·(3/4)·(3/6) / (3/4 + 3/6)
        ("q", ["q"], 100),
        ("a b", ["x", "a b", "a"], 100),  # of several the best counts
        ("c", ["c d", "e"], 100 * 2 / 3),
        ("我爱北京", ["我爱上海"], 50),
        ("naïve 你", ["naïve"], 100),  # a model that answers in Chinese does not change how it is measured
        ("naïve", ["naïve 你"], 100 * 2 / 3),
    ],
)
def test_by_hand(answer: str, accepted: list[str], score: float) -> None:
    assert rouge_l([answer], [accepted]) == pytest.approx([score])


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
