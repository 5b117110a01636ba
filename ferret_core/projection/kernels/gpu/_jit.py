"""``jit``, through which kernels call each other, typed as the function itself.

Triton 3.7 does not type the call of a compiled function, so a type checker assumes that calls never return.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    F = TypeVar("F")

    def jit(function: F, /) -> F: ...
else:
    from triton import jit

__all__ = ["jit"]
