"""Names and limits that workers and clients of the jobs share, without importing DBOS."""

from __future__ import annotations

EVALUATE = "evaluate"
ENCODE_SHARD = "encode_shard"
STATISTICS = "statistics"
PROBE = "probe"
ANALYSE_FIELDS = "analyse_fields"
ANNOTATE = "annotate"
#: How often a job is taken up again after its worker died; a job that always kills it must end some time.
MAX_ATTEMPTS = 30
