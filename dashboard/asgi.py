"""The whole site as one ASGI application: the pages, ``/api/v1`` and the security headers, in one process.

``equirank serve`` runs it; any ASGI server can: ``uvicorn dashboard.asgi:app``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from streamlit import config
from streamlit.runtime.pages_manager import PagesManager

from dashboard.api.routes import api_routes
from dashboard.components.failures import show_failure
from dashboard.current_site import the_site
from dashboard.headers import SecurityHeaders
from dashboard.request_log import hide_tokens

SCRIPT = Path(__file__).with_name("app.py")


@asynccontextmanager
async def lifespan(app: st.App) -> AsyncIterator[dict[str, Any]]:
    """Bring the store up to date before the first request; everything here is safe to repeat."""
    from pipeline.jobs.first_start import prepare

    site = the_site()
    await run_in_threadpool(prepare, site)
    yield {"site": site}


# Streamlit takes a folder called ``pages`` for a menu of its own until the first reader has run ``app.py``, and
# would tell whoever opens a permalink first that the page does not exist.
PagesManager.uses_pages_directory = False

settings = the_site().settings
hide_tokens()

# `streamlit run` finds the application by this assignment.
app = st.App(
    SCRIPT,
    routes=api_routes(),
    middleware=[Middleware(SecurityHeaders, frame_ancestors=settings.frame_ancestors)],
    lifespan=lifespan,
    on_script_error=show_failure,
)
# The configuration beside the script is found only now that the application has said where the script is.
config.get_config_options(force_reparse=True)
config.set_option("server.maxUploadSize", settings.limit_upload_mb, "the setting EQUIRANK_LIMIT_UPLOAD_MB")
