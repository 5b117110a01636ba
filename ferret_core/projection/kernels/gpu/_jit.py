"""``jit``, by which kernels call each other, typed as what they see: the function itself.

Triton 3.7 gives a compiled function's call no types, so a type checker believes that no call ever returns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    F = TypeVar("F")

    def jit(function: F, /) -> F: ...
else:
    from triton import jit

__all__ = ["jit"]
