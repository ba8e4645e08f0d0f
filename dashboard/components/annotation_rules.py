"""The rules of an expansion, each with a line on what it means."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard.components import permalinks
from dashboard.components.annotation_judges import PREFIX
from dashboard.components.annotation_words import AUDIT_RULES, REPEATED_RULES, VERIFY_RULES
from pipeline.toolex.settings import AuditRule, RepeatedTool, ToolexSettings, VerifyRule


def choose_rules(kind: str) -> dict[str, Any]:
    """Draw them in words of a kind, ``tool`` or ``skill``; returns arguments of ``ToolexSettings``."""
    usual = ToolexSettings()
    said: dict[str, Any] = {}
    with st.expander(f"Rules: when a {kind} or a combination is valid"):
        left, right = st.columns(2, gap="medium")
        with left, st.container(gap="xsmall"):
            verify = permalinks.segments(
                "Verify", [str(rule) for rule in VerifyRule], PREFIX + "rule_verify", str(usual.verify)
            )
            st.caption(VERIFY_RULES[VerifyRule(verify)].format(kind=kind))
        with right, st.container(gap="xsmall"):
            audit = permalinks.segments(
                "Audit", [str(rule) for rule in AuditRule], PREFIX + "rule_audit", str(usual.audit)
            )
            st.caption(AUDIT_RULES[AuditRule(audit)].format(kind=kind))
        with left, st.container(gap="xsmall"):
            repeated = permalinks.segments(
                f"A {kind} that is chosen twice", [str(rule) for rule in RepeatedTool], PREFIX + "rule_repeated",
                str(usual.repeated_tool),
            )  # fmt: skip
            st.caption(REPEATED_RULES[RepeatedTool(repeated)].format(kind=kind))
        with right, st.container(gap="xsmall"):
            said["cap"] = permalinks.number(
                "Combinations audited a query, at most", PREFIX + "cap", 1, 10_000, usual.cap, width=280
            )
            st.caption(
                "The best by reciprocal ranks come first; a query with more is marked as truncated. The labelled set "
                "needs no audit and does not count."
            )
    return said | {"verify": VerifyRule(verify), "audit": AuditRule(audit), "repeated_tool": RepeatedTool(repeated)}
