"""BibTeX of benchmark versions and runs: what was used, by version and hash, so that it can be found again."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import urlencode

from pipeline.jobs.public_address import public_address
from pipeline.jobs.site import Site
from store.records import BenchmarkRecord, RetrieverRecord, RunRecord

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "%": r"\%",
    "#": r"\#",
    "$": r"\$",
    "&": r"\&",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def escape_bibtex(text: str) -> str:
    """Others' text as the value of a field: one line that LaTeX typesets as itself."""
    one_line = " ".join(text.split())
    kept = "".join(sign for sign in one_line if unicodedata.category(sign) not in {"Cc", "Cf", "Cs"})
    return "".join(_SPECIAL.get(sign, sign) for sign in kept)


def citation_key(*parts: str) -> str:
    """A citation key: ASCII letters, digits and hyphens."""
    text = unicodedata.normalize("NFKD", "-".join(parts)).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", text).strip("-") or "equirank"


def benchmark_address(site: Site, benchmark: BenchmarkRecord) -> str:
    """The address of a version's card."""
    return f"{public_address(site.settings)}/benchmarks?{urlencode({'bm_benchmark': benchmark.name}, safe='@')}"


def benchmark_bibtex(benchmark: BenchmarkRecord, address: str) -> str:
    """The version's own citation, where it has one, and an entry that names the version and its hash.

    Args:
        benchmark: the version.
        address: where it is shown.
    """
    said = [f"version {benchmark.version}"]
    if benchmark.content_hash:
        said.append(f"content hash {benchmark.content_hash}")
    if benchmark.queries is not None:
        said.append(f"{benchmark.queries} queries")
    entry = _entry(
        citation_key(benchmark.slug, benchmark.version),
        title=f"{{{escape_bibtex(benchmark.title)}}}",
        year=str(benchmark.created_at.year),
        howpublished=f"\\url{{{_url(address)}}}",
        note=escape_bibtex(", ".join(said)),
    )
    return f"{benchmark.citation.strip()}\n\n{entry}" if benchmark.citation.strip() else entry


def run_bibtex(
    run: RunRecord, retriever: RetrieverRecord, benchmark: BenchmarkRecord, *, address: str, benchmark_address: str
) -> str:
    """An entry for one run, by id, benchmark version, scorer and ranking hash.

    Args:
        run: the run.
        retriever: what ranked.
        benchmark: what it was scored on.
        address: of its page, without a private token.
        benchmark_address: of the benchmark version's card.
    """
    method = f"{run.method}, {run.contract}" if run.contract else run.method
    said = [f"run {run.id}", f"benchmark {benchmark.name}"]
    if run.provenance == "reported":
        said.append(f"as printed in {run.place}")
    for name, value in (
        ("benchmark hash", run.benchmark_hash),
        ("ranking hash", run.ranking_hash),
        ("scorer", run.scorer_version),
    ):
        if value:
            said.append(f"{name} {value}")
    entry = _entry(
        citation_key("equirank", retriever.key, benchmark.slug, run.id),
        title=f"{{{escape_bibtex(f'{retriever.name} ({method}) on {benchmark.title}')}}}",
        year=str((run.published_at or run.created_at).year),
        howpublished=f"\\url{{{_url(address)}}}",
        note=escape_bibtex(", ".join(said)),
    )
    return f"{entry}\n{benchmark_bibtex(benchmark, benchmark_address)}"


def _entry(key: str, **fields: str) -> str:
    width = max(map(len, fields))
    lines = ",\n".join(f"  {name:<{width}} = {{{value}}}" for name, value in fields.items())
    return f"@misc{{{key},\n{lines}\n}}\n"


def _url(url: str) -> str:
    """An address inside LaTeX's url command, where braces, backslashes and per cent signs would end or change it."""
    return "".join(f"\\{sign}" if sign in "%#" else sign for sign in url if sign not in "{}\\ \n")
