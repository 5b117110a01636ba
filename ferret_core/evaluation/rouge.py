"""Rouge-L: the part of a reference that an answer contains, in order, by the field's standard and by the paper's.

Lin, "ROUGE: A Package for Automatic Evaluation of Summaries", 2004; computed by the package ``rouge-score`` without
stemming.

The package's tokenizer keeps only the letters a–z and digits, so identical Chinese sentences score 0 with it. The
reference of each pair determines the tokenizer, so that it never depends on the model: the package's own if all letters
of the reference are Latin, for comparability with the literature, else :func:`unicode_tokens`. On ASCII text both give
the same tokens.

:func:`rouge_l_paper` is the score of the Ferret paper, computed like the code of its authors and of FedKSeed. Both call
the package ``rouge`` 1.0.1 (``evaluations.py`` in https://github.com/allen4747/Ferret and in the branch FedKSeed of
https://github.com/alibaba/FederatedScope), which departs from Lin's definition. This gives that package's figures, for
comparison with the paper's.

    a sentence ends at a full stop, a word at white space; case and punctuation count
    U = the words in a longest common subsequence of some sentence of the answer and some sentence of the reference
    F = 2 |U| / (|words of the answer| + |words of the reference|)          (sets: a word counts once)

An empty answer scores 0. There is one reference: of several accepted answers, both codes take the first.
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
Words = list[str]


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
    """Splits text into lower-case runs of letters, marks and digits; unspaced scripts into single characters."""
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


def rouge_l_paper(answers: Sequence[str], references: Sequence[str]) -> list[float]:
    """Returns F of every pair, in percent."""
    return [100 * _f_measure(answer, reference) for answer, reference in zip(answers, references, strict=True)]


def _f_measure(answer: str, reference: str) -> float:
    given, wanted = _sentences(answer), _sentences(reference)
    if not given or not wanted:
        return 0.0
    union = {word for expected in wanted for sentence in given for word in _common(expected, sentence)}
    return 2 * len(union) / (len(set[str]().union(*given)) + len(set[str]().union(*wanted)))


def _sentences(text: str) -> list[Words]:
    # A sentence of blanks alone has one empty word, as in the package.
    return [part.split() or [""] for part in text.split(".") if part]


def _common(reference: Words, answer: Words) -> Words:
    """Returns a longest common subsequence; of several, the package's choice, because the union depends on it."""
    lengths = [[0] * (len(answer) + 1)]
    for word in reference:
        above, row = lengths[-1], [0]
        for j, other in enumerate(answer, start=1):
            row.append(above[j - 1] + 1 if word == other else max(above[j], row[j - 1]))
        lengths.append(row)
    found: Words = []
    i, j = len(reference), len(answer)
    while i and j:
        if reference[i - 1] == answer[j - 1]:
            found.append(reference[i - 1])
            i, j = i - 1, j - 1
        elif lengths[i - 1][j] > lengths[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return found
