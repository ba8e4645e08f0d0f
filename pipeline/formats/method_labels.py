"""Short names of methods for lists, as the field writes them; pages of single runs say everything."""

from __future__ import annotations

#: As the papers write them; other words stay as they were submitted.
TITLES = {
    "full-doc": "Full-Doc",
    "sub-query": "Sub-query",
    "adapter": "Adapter",
    "easytool": "EasyTool",
    "pluto": "PLUTo",
    "onlinerag": "OnlineRAG",
    "mftr": "MFTR",
    "stand-only": "Stand. Only",
    "rewrite-only": "Rewrite Only",
    "stand-rewrite": "Stand. + Rewrite",
    "weighting-only": "Weighting Only",
    "weighting-stand": "Weighting + Stand.",
    "weighting-rewrite": "Weighting + Rewrite",
    "without-weighting": "w/o Adaptive Weighting",
    "without-penalty": "w/o Missing Penalty",
}
#: What goes without saying: a model asked as its card says, and fields that need no language model.
_USUAL = {"card", "rule-based documents", "original query"}
#: The word of a run that was encoded as in the papers; "MFTR paper" is a preset of a method, and something else.
_PAPER = "paper"


def method_title(method: str) -> str:
    """``Full-Doc`` for ``full-doc``."""
    return TITLES.get(method, method)


def method_label(method: str, contract: str) -> str:
    """``MFTR v2``: the method, its preset, and what differs from the usual.

    Args:
        method: word of a run.
        contract: how it was asked, parts joined by commas.
    """
    title = method_title(method)
    parts = [part for part in _said(contract, "paper encoding") if part and part not in _USUAL]
    if parts:
        # "MFTR v2" names its method: said once.
        named = next((part for part in parts if part.lower().startswith(f"{title.lower()} ")), None)
        if named is not None:
            parts.remove(named)
            title = named
    return ", ".join([title, *parts])


def method_words(method: str, contract: str) -> str:
    """All of it: ``MFTR (card, MFTR v2, rule-based documents, original query)``."""
    said = ", ".join(_said(contract, "encoded as in the papers"))
    return method_title(method) + (f" ({said})" if said else "")


def _said(contract: str, paper: str) -> list[str]:
    """The parts, the word for the papers' encoding said as ``paper``."""
    return [paper if part == _PAPER else part for part in contract.split(", ")]
