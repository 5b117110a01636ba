"""Typing of kernels: ``jit``, through which they call each other, and ``Value``, the type of their operands.

Triton 3.7 does not type the call of a compiled function, so a type checker assumes that calls never return. Its own
types of operands fit neither way of running a kernel: a number there is a scalar tensor once compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from typing import Any as Value

    F = TypeVar("F")

    def jit(function: F, /) -> F: ...
else:
    from triton import jit
    from triton.language import tensor as Value

__all__ = ["Value", "jit"]
