"""Where numba keeps compiled kernels: one folder for each state of their sources.

numba's cache looks only at the file a kernel stands in, not at what it calls: after a change to a kernel in another
module it would run the old machine code, and figures would be wrong. So the folder is named by a hash of every module
that holds kernels. This must run before numba is imported, which is why the package does it first.
"""

from __future__ import annotations

import hashlib
import os
import sys
from functools import lru_cache
from pathlib import Path

_PREFIX = "kernels-"


def separate_kernel_cache() -> None:
    """Point ``NUMBA_CACHE_DIR`` to the folder of these sources, under the folder it names already, if any."""
    name = _PREFIX + sources_hash()
    given = os.environ.get("NUMBA_CACHE_DIR")
    base = Path(given) if given else _default_base()
    if base.name.startswith(_PREFIX):
        # Set by the process that started this one.
        base = base.parent
    os.environ["NUMBA_CACHE_DIR"] = str(base / name)
    if "numba" in sys.modules:
        # Somebody imported it first, when it read the variable; its caches look here when they are made.
        sys.modules["numba"].config.CACHE_DIR = str(base / name)


@lru_cache(maxsize=1)
def sources_hash() -> str:
    """A hash of every module of this package that holds kernels."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        if b"import numba" in source or b"from numba" in source:
            digest.update(f"{path.relative_to(package)} {len(source)}\n".encode())
            digest.update(source)
    return digest.hexdigest()[:16]


def _default_base() -> Path:
    """Beside the sources where that can be written, else in the user's cache."""
    beside = Path(__file__).parent / "__pycache__"
    if os.access(beside if beside.is_dir() else beside.parent, os.W_OK):
        return beside
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "equirank"
