"""Docstrings as Markdown: Python's ``name::`` before a block of code and ``:func:`` before a name are left out."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object


class Markdown(Extension):
    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        if obj.docstring:
            text = re.sub(r":(?:class|func|meth|mod):(?=`)", "", obj.docstring.value)
            obj.docstring.value = re.sub(r"::$", ":", text, flags=re.MULTILINE)
