"""The ``ir_metadata`` header of a run file: YAML in ``#`` lines, read for what it says of the run.

Source: Breuer et al., "ir_metadata: An Extensible Metadata Schema for IR Experiments" (SIGIR 2022).
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from pipeline.formats.messages import visible

START, END = "ir_metadata.start", "ir_metadata.end"

#: Lines of a header that are read.
_LINES = 500
#: Characters kept of a value.
_VALUE = 200


def read_metadata(lines: Sequence[bytes]) -> tuple[int, dict[str, str]]:
    """Find the header at the start of the text.

    Args:
        lines: the first lines of the text.

    Returns:
        The number of lines up to and including its end (0 without a header), and ``tag``, ``retriever``, …
    """
    body: list[str] = []
    inside = False
    for number, line in enumerate(lines[:_LINES]):
        if line.strip() and not line.lstrip().startswith(b"#"):
            return 0, {}
        text = line.lstrip().removeprefix(b"#").decode("utf-8", "replace")
        if text.strip() == START:
            inside = True
        elif text.strip() == END and inside:
            return number + 1, _facts(textwrap.dedent("\n".join(body)))
        elif inside:
            body.append(text)
    return 0, {}


def _facts(text: str) -> dict[str, str]:
    """The values a submission form asks for, none when the YAML does not parse."""
    import yaml

    # Anchors and aliases can grow a small text without bound; the schema has none.
    if "&" in text or "*" in text:
        return {}
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}
    found: dict[str, str] = {}
    for name, path in (
        ("tag", ("tag",)),
        ("retriever", ("method", "name")),
        ("description", ("research goal", "description")),
        ("team", ("actor", "team")),
        ("revision", ("implementation", "source", "commit")),
        ("repository", ("implementation", "source", "repository")),
    ):
        value: object = data
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            found[name] = visible(" ".join(str(value).split())[:_VALUE])
    return found
