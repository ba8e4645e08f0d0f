"""Every setting of EquiRank in one class, read from ``EQUIRANK_…`` environment variables."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from store.errors import StoreError


class SettingsError(StoreError):
    """A setting has a value that cannot be used."""


class Auth(StrEnum):
    """Who may write: everybody on this machine, or people signed in through OpenID Connect."""

    NONE = "none"
    OIDC = "oidc"


class Settings(BaseSettings):
    """What an operator can set; the help of each field is its line in the README's table."""

    model_config = SettingsConfigDict(env_prefix="EQUIRANK_", extra="ignore", frozen=True, hide_input_in_errors=True)

    home: Path = Field(
        default=Path("~/.equirank"),
        description="Folder for everything kept on this machine: the database, artifacts and caches.",
    )
    database_url: str = Field(
        default="",
        description="Database: empty for a SQLite file in the home folder, or "
        "postgresql://user:password@host:5432/name (needs the postgres extra).",
        json_schema_extra={"secret": True},
    )
    artifact_url: str = Field(
        default="",
        description="Where rankings, scores and benchmark tables are kept: empty for a folder in the home folder, "
        "another folder, or s3://bucket/path (needs the s3 extra).",
        json_schema_extra={"secret": True},
    )
    public_url: str = Field(
        default="http://localhost:8501",
        description="The address people open; printed permalinks start with it.",
    )
    host: str = Field(default="127.0.0.1", description="The address that the server listens on.")
    port: int = Field(default=8501, ge=1, le=65535, description="The port that the server listens on.")
    auth: Auth = Field(
        default=Auth.NONE,
        description="Sign-in: none means one trusted user on this machine; oidc is not supported in this version.",
    )
    frame_ancestors: str = Field(
        default="'self'",
        description="Which sites may show the pages in a frame (the value of the CSP directive frame-ancestors).",
    )
    limit_upload_mb: int = Field(default=512, ge=1, description="Largest run file that is accepted, in MiB.")
    limit_expanded_mb: int = Field(default=4096, ge=1, description="Largest run file after decompression, in MiB.")
    limit_expansion_ratio: int = Field(
        default=100, ge=1, description="Largest ratio of decompressed to compressed size of a run file."
    )
    limit_line_kb: int = Field(default=64, ge=1, description="Longest line of a run file, in KiB.")
    limit_depth: int = Field(default=1000, ge=1, description="Results kept for a query, after ranking.")
    limit_id_bytes: int = Field(default=1024, ge=1, description="Longest query or tool id, in bytes.")
    limit_submissions_per_day: int = Field(
        default=1000, ge=1, description="Submissions that one person may make in 24 hours."
    )
    limit_jobs_per_person: int = Field(
        default=20, ge=1, description="Jobs that one person may have waiting or running at a time."
    )
    limit_disputes_per_day: int = Field(
        default=200, ge=1, description="Disputed verdicts that the site takes in 24 hours."
    )
    demo_runs: bool = Field(
        default=True,
        description="Whether the embedded worker measures BM25 and MiniLM, plain, with MFTR (paper, v2) and with the "
        "adapter (MiniLM), on the demo benchmarks at the first start.",
    )
    worker_threads: int = Field(
        default=0, ge=0, description="Threads that a worker computes with; 0 takes every processor core."
    )
    worker_lost_seconds: float = Field(
        default=30, ge=1, description="Seconds of silence after which another worker takes over a worker's jobs."
    )
    allow_unpinned_models: bool = Field(
        default=False, description="Whether models without a full commit, whose weights may change, are evaluated."
    )
    allow_remote_code: bool = Field(
        default=False, description="Whether Python code that comes with a registered model may run in a worker."
    )
    allow_pickle_models: bool = Field(
        default=False, description="Whether weights that exist only as pickle files, which can run code, are read."
    )
    allow_model_folders: bool = Field(
        default=True, description="Whether a folder of the worker's machine may be named as a model."
    )
    allow_endpoints: bool = Field(
        default=True, description="Whether embeddings endpoints may be named as models; they see every text."
    )
    endpoint_hosts: str = Field(
        default="",
        description="Hosts, separated by commas, at which an embeddings endpoint may be addressed directly; "
        "empty allows only the providers' own addresses.",
    )

    llm_base_url: str = Field(
        default="",
        description="Address of an OpenAI-compatible server (such as http://localhost:8000/v1) that answers for models "
        "named openai/… and hosted_vllm/…; empty asks each model's own provider.",
    )
    llm_api_key: SecretStr = Field(
        default=SecretStr(""),
        description="Key for EQUIRANK_LLM_BASE_URL, if it needs one. The providers' own keys come from their own "
        "variables (OPENAI_API_KEY, ANTHROPIC_API_KEY, …) and are never sent to that address.",
        json_schema_extra={"secret": True},
    )
    llm_prices: str = Field(
        default="",
        description="Prices of models that have none or another one: provider/model=PROMPT/COMPLETION in US dollars a "
        "million tokens, separated by commas; 0/0 for a model that costs nothing.",
    )
    llm_concurrency: int = Field(
        default=16, ge=1, le=1000, description="Requests that a process keeps open at one provider of language models."
    )
    llm_requests_per_minute: int = Field(
        default=0, ge=0, description="Requests that a process begins at one provider in a minute; 0 for no bound."
    )
    llm_limits: str = Field(
        default="",
        description="Other bounds for some providers: provider=OPEN or provider=OPEN/PER_MINUTE, separated by commas, "
        "such as anthropic=8/50.",
    )
    llm_connect_seconds: float = Field(
        default=10, gt=0, description="Longest wait for a connection to a language model."
    )
    llm_read_seconds: float = Field(default=60, gt=0, description="Longest silence of a language model within a call.")
    llm_call_seconds: float = Field(default=120, gt=0, description="Longest time of a whole call to a language model.")
    llm_attempts: int = Field(
        default=4, ge=1, description="Invalid answers that a question may get before it is recorded as failed."
    )
    llm_retries: int = Field(
        default=6, ge=0, description="Repetitions of a call that broke off or was turned away, before the same."
    )
    llm_budget_dollars: float = Field(
        default=0,
        ge=0,
        description="The most that one piece of work may spend on language models, in US dollars; "
        "0 leaves it to who starts the work.",
    )
    llm_budget_calls: int = Field(
        default=0,
        ge=0,
        description="The most calls to language models that one piece of work may make; "
        "0 leaves it to who starts the work.",
    )

    @field_validator("home")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        """A relative home would move with the working directory."""
        return value.expanduser().absolute()

    @field_validator("public_url")
    @classmethod
    def _no_trailing_slash(cls, value: str) -> str:
        if not value.startswith(("http://", "https://")):
            raise ValueError("must start with http:// or https://")
        return value.rstrip("/")

    @field_validator("llm_base_url")
    @classmethod
    def _server_address(cls, value: str) -> str:
        if value and not value.startswith(("http://", "https://")):
            raise ValueError("must start with http:// or https://")
        if "@" in value:
            raise ValueError("must not hold a key or a password: set EQUIRANK_LLM_API_KEY instead")
        return value.rstrip("/")

    @field_validator("auth")
    @classmethod
    def _supported(cls, value: Auth) -> Auth:
        """Serving without the sign-in that an operator asked for would be worse than not starting."""
        if value is Auth.OIDC:
            raise ValueError(
                "sign-in through OpenID Connect is not in this version; unset EQUIRANK_AUTH or set it to none"
            )
        return value

    @model_validator(mode="after")
    def _defaults_under_home(self) -> Settings:
        if not self.database_url:
            object.__setattr__(self, "database_url", f"sqlite:///{self.home / 'equirank.sqlite3'}")
        if not self.artifact_url:
            object.__setattr__(self, "artifact_url", str(self.home / "artifacts"))
        return self

    @property
    def cache_folder(self) -> Path:
        """Files that can be made again at any time."""
        return self.home / "cache"

    @property
    def embedding_folder(self) -> Path:
        """Where embeddings are kept: beside the artifacts if they lie in a folder, which all workers then share."""
        if "://" not in self.artifact_url:
            return Path(self.artifact_url).expanduser() / "embeddings"
        return self.cache_folder / "embeddings"


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    """The settings of this process, read once.

    Raises:
        SettingsError: a variable has a value that cannot be used; the message names it.
    """
    try:
        return Settings()
    except ValidationError as error:
        lines = [
            f"EQUIRANK_{str(problem['loc'][0]).upper() if problem['loc'] else '…'}: "
            f"{problem['msg'].removeprefix('Value error, ')}"
            for problem in error.errors(include_url=False, include_input=False)
        ]
        raise SettingsError("these settings cannot be used:\n  " + "\n  ".join(lines)) from None


def redacted(url: str) -> str:
    """The URL without its password, for messages and logs."""
    if "://" not in url:
        return url
    try:
        return make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        return url.split("://", 1)[0] + "://…"


def settings_table() -> str:
    """A Markdown table of all settings: variable, default, help; part of the README."""
    lines = ["| variable | default | what it does |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        default = field.default
        shown = f"`{default}`" if str(default) else "(empty)"
        lines.append(f"| `EQUIRANK_{name.upper()}` | {shown} | {field.description} |")
    return "\n".join(lines)
