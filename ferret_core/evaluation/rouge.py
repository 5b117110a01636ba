"""Rouge-L: the part of a reference that an answer contains, in order.

Lin, "ROUGE: A Package for Automatic Evaluation of Summaries", 2004; computed by the package ``rouge-score`` without
stemming. The Ferret paper uses another score: :mod:`ferret_core.evaluation.rouge_paper`.

The package's tokenizer keeps only the letters a–z and digits, so identical Chinese sentences score 0 with it. The
reference of each pair determines the tokenizer, so that it never depends on the model: the package's own if all letters
of the reference are Latin, for comparability with the literature, else :func:`unicode_tokens`. On ASCII text both give
the same tokens.
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
    """Returns the F-measure of Rouge-L of every answer with the best of its references (at least one), in percent."""
    from rouge_score.rouge_scorer import RougeScorer

    latin = RougeScorer(["rougeL"])
    other = RougeScorer(["rougeL"], tokenizer=_UnicodeTokenizer())

    def score(answer: str, reference: str) -> float:
        scorer = latin if _is_latin(reference) else other
        return 100 * scorer.score(reference, answer)["rougeL"].fmeasure

    pairs = zip(answers, references, strict=True)
    return [max(score(answer, reference) for reference in accepted) for answer, accepted in pairs]


def unicode_tokens(text: str) -> list[str]:
    """Splits text into lower-case runs of letters, marks and digits of any script; unspaced scripts into single
    characters."""
    return "".join(_spaced(character) for character in unicodedata.normalize("NFKC", text).lower()).split()


class _UnicodeTokenizer:
    """:func:`unicode_tokens` in the interface of ``rouge-score``."""

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
