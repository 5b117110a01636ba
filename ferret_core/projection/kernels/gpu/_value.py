"""``Value``, the type of kernel operands: a tensor to Triton, anything to a type checker.

Triton's own types fit neither way of running a kernel: a number there is a scalar tensor once compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any as Value
else:
    from triton.language import tensor as Value

__all__ = ["Value"]
