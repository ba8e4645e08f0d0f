"""A skill's three texts (name, description, SKILL.md) in the two that a benchmark keeps (name, documentation).

Nearly always the description is the one in the document's YAML front matter; then the documentation is SKILL.md
byte for byte. Otherwise a front matter of our own, with the description and a comment that marks it, is put before
the unchanged SKILL.md. ``split_skill_document`` undoes it, so the retrieval text ``name | description | skill_md`` can
always be built.
"""

from __future__ import annotations

import json
import re

import yaml

_ADDED = "---\n# Description added on import; the document below is unchanged and does not give it.\ndescription: "
_FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_FRONT_MATTER_BYTES = 64 * 1024
# The loader that leaves every scalar as text; libyaml's is the same, faster.
_TEXT_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def join_skill_document(description: str, skill_md: str) -> str:
    """Documentation that holds both texts; ``skill_md`` itself whenever it gives the description."""
    if not skill_md.startswith(_ADDED) and front_matter_description(skill_md) == description.strip():
        return skill_md
    return f"{_ADDED}{json.dumps(description.strip(), ensure_ascii=False)}\n---\n{skill_md}"


def split_skill_document(documentation: str) -> tuple[str, str]:
    """(description, SKILL.md) of a skill's documentation; the description is trimmed, "" when there is none."""
    if documentation.startswith(_ADDED):
        quoted, _, skill_md = documentation.removeprefix(_ADDED).partition("\n---\n")
        try:
            return str(json.loads(quoted)), skill_md
        except ValueError:
            pass
    return front_matter_description(documentation), documentation


def front_matter_description(document: str) -> str:
    """The trimmed ``description`` of the YAML front matter; "" without one or when it cannot be read."""
    match = _FRONT_MATTER.match(document[:_FRONT_MATTER_BYTES])
    if match is None:
        return ""
    try:
        entries = yaml.load(match[1], Loader=_TEXT_LOADER)
    except (yaml.YAMLError, RecursionError, ValueError):
        return ""
    description = entries.get("description") if isinstance(entries, dict) else None
    return description.strip() if isinstance(description, str) else ""
