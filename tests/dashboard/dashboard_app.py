"""How tests open a page of the app."""

from __future__ import annotations

from typing import Any

from streamlit.testing.v1 import AppTest

#: The pages of the app, as ``AppTest`` learns them from a first run.
_pages: dict[str, Any] = {}


def open_page(app: AppTest, name: str, **query: str | list[str]) -> AppTest:
    """Open one page as a permalink would: it is the first that its session shows."""
    if not _pages:
        _pages.update(AppTest.from_file(str(app._script_path), default_timeout=60).run()._registered_pages)
    app._registered_pages = dict(_pages)
    app.switch_page(f"pages/{name}.py")
    app.query_params.clear()
    app.query_params.update(query)
    return app.run()
