"""A review: whoever has a link to it reviews, decides disagreements, or leads. The link's secret says who they are."""

from __future__ import annotations

import streamlit as st

from dashboard.components.failures import show, shown_errors
from dashboard.components.review_lead import show_lead
from dashboard.components.review_work import show_work
from dashboard.components.untrusted import plain
from dashboard.current_site import the_site
from store.access import benchmarks, validation
from store.errors import NotFound

#: The address's word for the secret; as that of private runs it is blotted out in the request log.
TOKEN = "token"


def page() -> None:
    """Draw the page."""
    site = the_site()
    secret = st.query_params.get(TOKEN)
    if not secret:
        st.title("No review chosen", anchor=False)
        st.markdown("A review opens by the link that its lead sent you.")
        return
    try:
        with site.database.reading() as session:
            opened = validation.open_link(session, secret)
            benchmark = benchmarks.get_by_id(session, opened.sample.benchmark_version_id)
    except NotFound as error:
        st.title("This review cannot be shown", anchor=False)
        show(str(error))
        return
    person = opened.person
    if person is None:
        with st.container(gap="xxsmall"):
            st.title("Leading a review", anchor=False)
            st.caption(f"{plain(benchmark.title)} ({plain(benchmark.name)})")
        show_lead(site, opened.sample, benchmark)
        return
    show_work(site, opened.sample, person, benchmark)


with shown_errors():
    page()
