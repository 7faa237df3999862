"""A page as one file that needs nothing else, to mail or to attach to a ticket: no request leaves it."""

import re
from base64 import b64encode
from hashlib import sha256

from crosswind.client.local import Local
from crosswind.dashboards.assets import asset
from crosswind.dashboards.pages.page import Page, PageQuery, View
from crosswind.dashboards.pages.render import Address, render

FIRST = "theme.js"  # runs before the first paint; the other scripts, when the page is whole
STYLES = re.compile(r'<link rel="stylesheet" href="[^"]*static/([\w.-]+)\?[^"]*">')
SCRIPT = re.compile(r'<script src="[^"]*static/([\w.-]+)\?[^"]*"[^>]*></script>\n?')
LEFT_OUT = re.compile(r'<form\b.*?</form>|<p class="links">.*?</p>|<link rel="icon"[^>]*>\n?', re.DOTALL)
TARGET = re.compile(r'(<a\b[^>]*?|<div class="plot"[^>]*?) (?:href="(?!#)|data-link=")[^"]*"')


def report_of(client: Local, page: Page, query: PageQuery) -> str:
    """Return a page of a store as one file. Raises: as the page's view."""
    path = page.path.replace("{run_id}", query.run_id)
    return report(
        page, page.view(client, query), Address("./", path, query.parameters, damaged=client.store.lake.damaged)
    )


def report(page: Page, view: View, address: Address) -> str:
    """Return the page as one file: styles and scripts within it, and no links, which would lead nowhere from it."""
    html = render(page, view, address, is_report=True)
    names = SCRIPT.findall(html)
    html = TARGET.sub(r"\1", LEFT_OUT.sub("", SCRIPT.sub("", html)))
    html = STYLES.sub(lambda link: f"<style>{_text(link[1])}</style>\n<script>{_text(FIRST)}</script>", html)
    scripts = "".join(f"<script>{_text(name)}</script>\n" for name in names if name != FIRST)
    policy = f'<meta http-equiv="Content-Security-Policy" content="{_policy(names)}">'
    return html.replace("<head>", f"<head>\n{policy}", 1).replace("</body>", f"{scripts}</body>")


def _policy(scripts: list[str]) -> str:
    hashes = " ".join(f"'sha256-{b64encode(sha256(_text(name).encode()).digest()).decode()}'" for name in scripts)
    return f"default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; script-src {hashes}"


def _text(name: str) -> str:
    """Return a file as it may be within a page: nothing in it ends the element."""
    return re.sub(r"</(?=script|style)", r"<\/", asset(name).body.decode())
