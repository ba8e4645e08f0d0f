"""How tests open a page of the app."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest


def open_page(app: AppTest, name: str, **query: str | list[str]) -> AppTest:
    """Open one page as a permalink would."""
    app.run()
    app.switch_page(f"pages/{name}.py")
    app.query_params.clear()
    app.query_params.update(query)
    return app.run()
