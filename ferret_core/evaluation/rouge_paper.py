"""Rouge-L as in the Ferret paper, computed like the code of its authors and of FedKSeed.

Both call the package ``rouge`` 1.0.1 (``evaluations.py`` in https://github.com/allen4747/Ferret and in the branch
FedKSeed of https://github.com/alibaba/FederatedScope), which departs from Lin's definition. This gives that package's
figures, for comparison with the paper's; the field's standard is :mod:`ferret_core.evaluation.rouge`.

    a sentence ends at a full stop, a word at white space; case and punctuation count
    U = the words in a longest common subsequence of some sentence of the answer and some sentence of the reference
    F = 2 |U| / (|words of the answer| + |words of the reference|)          (sets: a word counts once)

An empty answer scores 0. There is one reference: of several accepted answers, both codes take the first.
"""

from __future__ import annotations

from collections.abc import Sequence

Words = list[str]


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
