"""People review in browsers of their own: blind, by keyboard, and the report is what can be worked out by hand."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pipeline.jobs.labels.samples import draw_sample
from pipeline.jobs.site import Site, open_site
from store.access import benchmarks, validation
from store.settings import Settings
from store.validation_models import ReviewerRole
from tests.e2e.conftest import Served
from tests.e2e.pages import open_page, settle
from tests.started_home import copy_home

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

DEMO = "demo-tools@1"
#: A query with a mail address in it.
WITH_ADDRESS = "wk_162"


@dataclass(frozen=True)
class Reviewed:
    """A served site with a sample of three items."""

    served: Served
    site: Site
    sample: str
    lead: str

    def invite(self, name: str, role: ReviewerRole) -> str:
        with self.site.database.session() as session:
            return validation.invite(session, self.sample, name, role).secret

    def open(self, browser: Browser, secret: str, *, width: int = 1280) -> Page:
        return open_page(browser, f"{self.served.url}/review?token={secret}", width=width)


@pytest.fixture
def reviewed(new_site: Callable[..., Served], started: Settings) -> Generator[Reviewed]:
    served = new_site()
    copy_home(started, served.home)
    with served.running():
        site = open_site(Settings(home=served.home))
        with site.database.reading() as session:
            record = benchmarks.get(session, DEMO)
        made = draw_sample(site, record, 3, 7)
        yield Reviewed(served, site, made.sample.id, made.secret)
        site.database.close()


def query_of(page: Page) -> str:
    """What the item before a reviewer asks."""
    return page.get_by_role("heading").first.inner_text()


def answer(page: Page, choice: str, reason: str) -> None:
    """Choose, write and send without touching the mouse, and wait for what comes next."""
    before = query_of(page)
    place = page.get_by_role("radio", name=re.compile(f"^{choice}"))
    place.focus()
    page.keyboard.press("Space")
    # The radio group is one stop of the tab order, the sentence the next.
    page.keyboard.press("Tab")
    page.keyboard.type(reason)
    page.keyboard.press("Control+Enter")
    page.wait_for_function("text => !document.querySelector('h3')?.innerText.includes(text)", arg=before)
    settle(page)


def test_two_review_blind_a_third_decides_and_the_report_is_right(browser: Browser, reviewed: Reviewed) -> None:
    lead = reviewed.open(browser, reviewed.lead)
    lead.get_by_label("Name").fill("Annabel")
    lead.get_by_role("button", name="Invite").click()
    link = lead.locator("code").first.inner_text()
    assert link.startswith(f"{reviewed.served.url}/review?token=")
    ann = open_page(browser, link)
    bob = reviewed.open(browser, secret_of_bob := reviewed.invite("Bobby", ReviewerRole.REVIEWER), width=390)
    assert bob.evaluate("document.documentElement.scrollWidth") <= 390
    # Both have the same item before them, and neither learns what the other says of it.
    assert query_of(ann) == query_of(bob)
    answer(ann, "Valid", "Every step has its tool.")
    answer(bob, "Invalid: incomplete coverage", "The second step is missing.")
    for page, other in ((ann, "The second step is missing."), (bob, "Every step has its tool.")):
        assert all(word not in page.content() for word in (other, "Annabel" if page is bob else "Bobby"))
    # The next item is at the top of a phone's window although the button was far below.
    assert bob.evaluate("document.querySelector('h3').getBoundingClientRect().top") < 300
    for choice in ("Valid", "Invalid: other"):
        answer(ann, choice, "As I see it.")
        answer(bob, choice, "As I see it.")
    assert "You are through" in ann.content()

    cyd = reviewed.open(browser, reviewed.invite("Cydney", ReviewerRole.ADJUDICATOR))
    said = cyd.inner_text("[data-testid=stMain]")
    assert "The second step is missing." in said and "Every step has its tool." in said
    assert "Annabel" not in said and "Bobby" not in said
    answer(cyd, "Valid", "The first tool does both steps.")
    assert "No disagreement waits" in cyd.content()

    # Ann says valid, valid, invalid, Bob invalid, valid, invalid; the first is decided as valid: 2 of 3. They agree on
    # 2 of 3; by chance on 2/3 · 1/3 + 1/3 · 2/3 = 4/9; κ = (6/9 - 4/9) / (5/9). Wilson's interval of 2 in 3.
    lead.reload()
    settle(lead)
    report = lead.inner_text("[data-testid=stMain]")
    assert "66.7 % of the accepted combinations are valid" in report and "20.8 to 93.9" in report
    assert "agree on 66.7 % of 3. Cohen's κ is 0.40." in report
    lead.get_by_role("button", name="Close the review").click()
    lead.get_by_role("button", name="Close it", exact=True).click()
    lead.get_by_text("Closed on").wait_for()

    # Public now, without a link and without names; and no secret is in an address that goes on or in the log.
    card = open_page(browser, f"{reviewed.served.url}/benchmarks?bm_benchmark={DEMO}")
    told = card.inner_text("[data-testid=stMain]")
    assert "66.7 % of the accepted combinations are valid" in told and "Annabel" not in told
    ann.get_by_role("link", name="Leaderboard").click()
    ann.wait_for_url(lambda url: "/review" not in url)
    assert "token" not in ann.url
    log = (reviewed.served.home.parent / "server.log").read_text()
    assert "/review" in log
    assert all(secret not in log for secret in (reviewed.lead, secret_of_bob, link.rpartition("=")[2]))

    # A stranger's text is no link, wherever it stands.
    query = open_page(browser, f"{reviewed.served.url}/queries?q_benchmark={DEMO}&q_query={WITH_ADDRESS}")
    assert query.locator("[data-testid=stMain] a[href^=mailto]").count() == 0
    for page in (lead, ann, bob, cyd, card, query):
        page.context.close()
