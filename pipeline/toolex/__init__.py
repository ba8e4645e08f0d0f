"""ToolEX: from one labelled combination a query to every valid one that the judges accept.

Three stages (ToolEX paper, §3.2): a query is decomposed into one sub-query a labelled tool, candidates are retrieved
and verified for each sub-query, and their combinations are audited. Nothing here touches a database: questions go to
an ``Asker``, results are records and frames.
"""
