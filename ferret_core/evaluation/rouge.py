"""Rouge-L: how much of a reference an answer contains, in order.

Lin, "ROUGE: A Package for Automatic Evaluation of Summaries", 2004; computed by the package ``rouge-score`` without
stemming. The Ferret paper's own figures are scored otherwise: :mod:`ferret_core.evaluation.rouge_paper`.

The package's tokenizer keeps the letters a–z and digits alone, so identical Chinese sentences score 0 with it. Which
tokenizer is used is decided for each pair by its reference, so that it can never depend on the model: the package's
own if all letters of the reference are Latin, which keeps the figures of the literature, else :func:`unicode_tokens`.
On ASCII text both give the same tokens.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

# Thai, Lao, Burmese, Khmer; kana and Han with their extensions: scripts that put no blanks between words.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


def rouge_l(answers: Sequence[str], references: Sequence[Sequence[str]]) -> list[float]:
    """F-measure of Rouge-L of every answer with the best of its references (at least one), in percent."""
    from rouge_score.rouge_scorer import RougeScorer

    latin = RougeScorer(["rougeL"])
    other = RougeScorer(["rougeL"], tokenizer=_UnicodeTokenizer())

    def score(answer: str, reference: str) -> float:
        scorer = latin if _is_latin(reference) else other
        return 100 * scorer.score(reference, answer)["rougeL"].fmeasure

    pairs = zip(answers, references, strict=True)
    return [max(score(answer, reference) for reference in accepted) for answer, accepted in pairs]


def unicode_tokens(text: str) -> list[str]:
    """Lower-case runs of letters, marks and digits of any script; single characters where words are not spaced."""
    return "".join(_spaced(character) for character in unicodedata.normalize("NFKC", text).lower()).split()


class _UnicodeTokenizer:
    """:func:`unicode_tokens` in the form that ``rouge-score`` takes."""

    def tokenize(self, text: str) -> list[str]:
        return unicode_tokens(text)


def _spaced(character: str) -> str:
    if _UNSPACED.match(character):
        return f" {character} "
    return character if unicodedata.category(character)[0] in "LMN" else " "


def _is_latin(text: str) -> bool:
    return text.isascii() or all(
        unicodedata.name(character, "").startswith("LATIN ") for character in text if character.isalpha()
    )
