"""How many tokens a prompt can have at most, without a tokenizer."""

from __future__ import annotations

import json

from pipeline.llm.records import Question

#: Tokens that a chat template puts around a message and around the whole, generously.
_PER_MESSAGE = 16
_PER_REQUEST = 128
#: No model answers with more tokens.
_LONGEST_ANSWER = 2_000_000


def most_prompt_tokens(question: Question) -> int:
    """An upper bound for every byte-level tokenizer: one token a byte, with the schema and the chat template.

    Real counts are about a quarter of it. A budget reserves with this bound, because a provider's tokenizer is not
    known here and a budget must hold whatever it counts.
    """
    # The schema twice: a server without schemas gets it in the format and in a message.
    schema = json.dumps(question.schema, ensure_ascii=False)
    texts = [*(message.content for message in question.messages), schema, schema]
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    return size + _PER_MESSAGE * len(question.messages) + _PER_REQUEST


def believable(question: Question, prompt_tokens: int, completion_tokens: int, text: str | None) -> bool:
    """Whether a provider's counts can be those of a call: a server may say anything, and budgets go by what it says."""
    answered = completion_tokens > 0 or not text
    return 0 < prompt_tokens <= most_prompt_tokens(question) and completion_tokens <= _LONGEST_ANSWER and answered
