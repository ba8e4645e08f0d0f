"""Read a prompt file and turn it into messages."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from pipeline.errors import JudgeError
from pipeline.llm.prompts.fences import DATA_RULE, fence
from pipeline.llm.records import Message

_FOLDER = Path(__file__).parent
_NAME = re.compile(r"[a-z0-9_]+")
_PLACE = re.compile(r"\{\{\s*(fence\s+)?([a-z_][a-z0-9_]*)\s*\}\}")


@dataclass(frozen=True)
class Prompt:
    """A template of two messages.

    Attributes:
        name: name of the file without its ending.
        system: instructions; ``DATA_RULE`` is added at its end.
        user: the material of one question.
    """

    name: str
    system: str
    user: str

    @cached_property
    def version(self) -> str:
        """Hash of everything that the model is told apart from the values, 12 hex digits."""
        content = "\x00".join((self.system, self.user, DATA_RULE, fence("", "label")))
        return hashlib.sha256(content.encode()).hexdigest()[:12]

    @property
    def reference(self) -> str:
        """``name@version``, what ``Question.prompt`` takes."""
        return f"{self.name}@{self.version}"

    @cached_property
    def variables(self) -> frozenset[str]:
        """Names of the values that the template needs."""
        return frozenset(match[2] for text in (self.system, self.user) for match in _PLACE.finditer(text))

    def messages(self, **values: str) -> tuple[Message, ...]:
        """The system and the user message with the values put in.

        Raises:
            JudgeError: a value is missing, or one is given that the template does not know.
        """
        missing = sorted(self.variables - values.keys())
        unknown = sorted(values.keys() - self.variables)
        if missing or unknown:
            parts = [f"has no value for {', '.join(missing)}"] if missing else []
            parts += [f"does not use {', '.join(unknown)}"] if unknown else []
            raise JudgeError(
                f"the prompt {self.name} {' and '.join(parts)}; it takes {', '.join(sorted(self.variables)) or 'none'}"
            )
        system = f"{_filled(self.system, values)}\n\n{DATA_RULE}"
        return Message("system", system), Message("user", _filled(self.user, values))


def _filled(template: str, values: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        text = values[match[2]]
        return fence(text, match[2]) if match[1] else text

    return _PLACE.sub(value, template)


def parse_prompt(name: str, text: str) -> Prompt:
    """A prompt from the text of its TOML file.

    Raises:
        JudgeError: the text is no TOML, or lacks ``system`` or ``user``.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise JudgeError(f"the prompt file {name}.toml cannot be read: {error}") from None
    for key in ("system", "user"):
        if not isinstance(content.get(key), str) or not content[key].strip():
            raise JudgeError(f"the prompt file {name}.toml has no text for `{key}`")
    unknown = sorted(content.keys() - {"system", "user"})
    if unknown:
        raise JudgeError(f"the prompt file {name}.toml has keys that mean nothing here: {', '.join(unknown)}")
    prompt = Prompt(name, content["system"].strip(), content["user"].strip())
    for template in (prompt.system, prompt.user):
        rest = _PLACE.sub("", template)
        if "{{" in rest or "}}" in rest:
            raise JudgeError(
                f"the prompt file {name}.toml has a place that cannot be filled: "
                "write {{name}} or {{fence name}} with a name of small letters, digits and _"
            )
    return prompt


@lru_cache(maxsize=64)
def load_prompt(name: str) -> Prompt:
    """The prompt of this name.

    Raises:
        JudgeError: there is no such file, or it cannot be used.
    """
    path = _FOLDER / f"{name}.toml"
    if not _NAME.fullmatch(name) or not path.is_file():
        raise JudgeError(f"there is no prompt {name!r}; known are {', '.join(prompt_names()) or 'none'}")
    return parse_prompt(name, path.read_text(encoding="utf-8"))


def prompt_names() -> tuple[str, ...]:
    """Names of all prompt files, sorted."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))
