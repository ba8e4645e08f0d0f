"""Eight bytes at a time: the loads and bit counts numba has no name for.

A caller must leave ``SLACK`` readable bytes after the last position it scans from.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

#: Bytes a scan may read past its last position.
SLACK = 8

_ONES = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_BANG = np.uint64(0x2121212121212121)


def _load_word(typingctx: Any, buffer: Any, position: Any) -> Any:
    """The eight bytes at ``buffer[position]`` as a little-endian uint64, unaligned, without a bounds check."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(array.data, [arguments[1]])
        return builder.load(builder.bitcast(address, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(buffer, types.int64), generate


def _trailing_zeros(typingctx: Any, value: Any) -> Any:
    """Number of zero bits below the lowest set bit of a uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], cgutils.false_bit)

    return types.int64(types.uint64), generate


load_word: Any = intrinsic(_load_word)
trailing_zeros: Any = intrinsic(_trailing_zeros)


@numba.njit(cache=True, nogil=True)
def token_end(buffer, position):  # type: ignore[no-untyped-def]
    """First position at or after ``position`` whose byte is not printable ASCII (33 … 126)."""
    while True:
        word = load_word(buffer, position)
        # A byte below 33 borrows into its high bit, 127 carries into it, 128 and above have it; the lowest is exact.
        stops = ((word - _BANG) | word | (word + _ONES)) & _HIGH
        if stops != np.uint64(0):
            return position + (trailing_zeros(stops) >> 3)
        position += 8
