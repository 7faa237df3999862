"""Logging in and out in a real browser, at a real server that requires a token."""

from pathlib import Path

from playwright.sync_api import Browser
from tests.serving import serving

from crosswind.api.access.credentials import COOKIE
from crosswind.data.schema.access import Principal, PrincipalKind, TokenUse
from crosswind.data.store.store import Store


def test_a_browser_logs_in_by_token_or_link_and_out(browser: Browser, tmp_path: Path) -> None:
    anna = Principal(PrincipalKind.PERSON, "anna", user="anna")
    with Store.open(tmp_path / "home") as store, store.catalog.write() as session:
        token = session.tokens.issue(anna, 60, created_by="owner").secret
        link = session.tokens.issue(anna, 60, created_by="owner", use=TokenUse.LINK).secret
    with serving(tmp_path / "home", "--port", "0", "--require-token") as (url, _):
        context = browser.new_context(viewport={"width": 380, "height": 600})
        page = context.new_page()
        page.goto(f"{url}studies?workload=x")
        page.get_by_label("Token").fill("not a token")
        page.get_by_role("button", name="Log in").click()
        assert page.get_by_role("alert").inner_text() == "The token is unknown here."
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"{url}studies?workload=x")
        [cookie] = context.cookies()
        assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == (COOKIE, True, "Strict")
        page.get_by_role("link", name="Account").click()
        page.get_by_role("button", name="Log out").click()
        page.wait_for_url(f"{url}login")
        assert context.cookies() == []
        page.goto(f"{url}login?link={link}")
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(url)
        assert page.evaluate("document.documentElement.scrollWidth") <= 380
        context.close()
