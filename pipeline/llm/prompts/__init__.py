"""Prompt files (``*.toml`` in this folder), how they are loaded and how foreign text is delimited in them.

A prompt file has two strings, ``system`` and ``user``. ``{{name}}`` stands for a value put in as it is,
``{{fence name}}`` for text written by others, which is put between marks that it cannot close. Values are put in
in one pass: braces inside a value mean nothing.
"""

from pipeline.llm.prompts.fences import DATA_RULE, fence
from pipeline.llm.prompts.loading import Prompt, load_prompt, parse_prompt, prompt_names

__all__ = ["DATA_RULE", "Prompt", "fence", "load_prompt", "parse_prompt", "prompt_names"]
