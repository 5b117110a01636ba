from __future__ import annotations

from scripts.prose import hits, of_python

SOURCE = '''
"""Whether those that lie here are told."""
x = 1  # of its own
text = "whoever"
Field(description="for whom it is")
'''


def test_finds_phrases_in_docstrings_comments_and_descriptions_alone() -> None:
    texts = list(of_python("module.py", SOURCE))
    assert [hit.line for hit in hits("opens with a clause", texts)] == [2]
    assert [hit.line for hit in hits("of its own", texts)] == [3]
    assert [hit.line for hit in hits("whoever", texts)] == [5]
    assert hits("is none", texts) == []
