"""The console on a real socket, looked at with a real browser."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn

from idios.config import read_configuration
from idios.ledger import Ledger, Role
from idios.party import TrustedParty
from idios.sandbox import write_people
from idios.server.app import create_app
from idios.server.service import Service
from tests.services.chromium import program

SLOW = 3
"""Seconds after which answers about surveys leave; those about the archive take longer than any test."""

PATIENCE = 30_000
"""Milliseconds that a page may take on a busy machine."""

CAPTURES = 5
"""How often a picture is tried: now and then Chromium has no frame at hand, and has one when asked again."""

TOML = f"""
[ledger]
url = "sqlite:///ledger.db"
key_file = "ledger.key"

[server]
requests_per_minute = 100000
requests_per_minute_address = 100000

[datasets.people]
source = "people.parquet"
shares_source = true
version = "2026-11"
protection = "differential"
budget = 10
check = 0
release_seconds = 0

[datasets.people.columns]
age = {{ type = "integer", bounds = [0, 120], nullable = false }}
income = {{ type = "integer", nullable = false }}
region = {{ type = "category", values = ["north", "south", "east", "west"] }}

[datasets.surveys]
source = "people.parquet"
shares_source = true
version = "2026-11"
protection = "individual"
analysts = "trusted"
budget = 5
release_seconds = {SLOW}

[datasets.surveys.columns]
age = {{ type = "integer", bounds = [0, 120], nullable = false }}
income = {{ type = "integer", nullable = false }}

[datasets.archive]
source = "people.parquet"
shares_source = true
version = "2026-11"
protection = "individual"
analysts = "trusted"
accounting = "concentrated"
budget = {{ epsilon = 5, delta = "1e-6" }}
release_seconds = 60

[datasets.archive.columns]
age = {{ type = "integer", bounds = [0, 120], nullable = false }}
income = {{ type = "integer", nullable = false }}
"""


@dataclass(frozen=True)
class Served:
    """A running server and its callers: ada may ask, bob was granted nothing, grace oversees."""

    address: str
    service: Service
    tokens: dict[str, str]

    @property
    def ledger(self) -> Ledger:
        return self.service.party.ledger

    def spent(self, dataset: str = "people") -> Fraction:
        return self.ledger.balance(dataset).epsilon.spent

    def analyst(self, name: str, cap: str) -> str:
        """The token of a new analyst, who may spend so much on people."""
        self.ledger.add_analyst(name)
        self.ledger.grant(name, "people", epsilon=Fraction(cap))
        return self.ledger.issue_token(name).secret


@contextmanager
def served(folder: Path, toml: str = TOML) -> Iterator[Served]:
    """Serve generated people on a loopback port until the tests end, or what a configuration declares."""
    write_people(folder / "people.parquet", 3000)
    config = folder / "idios.toml"
    config.write_text(toml)
    configuration = read_configuration(config, {})
    party = TrustedParty.from_config(config)
    book = party.ledger
    for name in ("ada", "bob"):
        book.add_analyst(name)
    for name in configuration.datasets:
        book.grant("ada", name, epsilon=Fraction(4) if name == "people" else None)
    tokens = {"ada": book.issue_token("ada").secret, "bob": book.issue_token("bob").secret}
    tokens["grace"] = book.issue_token("grace", role=Role.CONTROLLER).secret
    service = Service.start(party, configuration.datasets, configuration.server)
    server = uvicorn.Server(uvicorn.Config(create_app(service), log_config=None, access_log=False, ws="none"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield Served(f"http://127.0.0.1:{listening.getsockname()[1]}", service, tokens)
        finally:
            server.should_exit = True
            thread.join(30)


EXPECTED = re.compile(r"Failed to load resource: the server responded with a status of (401|403|404|409|422)")


@dataclass
class Watched:
    """A browser's window, what it asked for elsewhere, and what went wrong in it."""

    page: Any
    served: Served
    elsewhere: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        self.page.goto(self.served.address + path)

    def sign_in(self, who: str) -> None:
        self.open("/console/sign-in")
        self.page.get_by_label("Your token").fill(self.served.tokens.get(who, who))
        self.press("Sign in")
        self.page.wait_for_url(re.compile("/console/(datasets|overview)$"))

    def write(self, sql: str, epsilon: str = "0.5") -> None:
        """Fill in a question without completion."""
        self.page.get_by_label("Question in SQL").fill(sql)
        self.page.keyboard.press("Escape")
        self.page.get_by_label("ε to spend").fill(epsilon)

    def press(self, name: str, inside: Any = None) -> None:
        """Send a form by its button, and wait for the page that answers."""
        self._leave_by((inside or self.page).get_by_role("button", name=re.compile(name)))

    def follow(self, name: str) -> None:
        """Follow the first link of a name, and wait for the page it leads to."""
        self._leave_by(self.page.get_by_role("link", name=name, exact=True).first)

    def _leave_by(self, control: Any) -> None:
        with self.page.expect_navigation():
            control.click()

    def picture(self, path: Path) -> None:
        """Keep what the whole page looks like."""
        from playwright.sync_api import Error

        for left in reversed(range(CAPTURES)):
            try:
                self.page.screenshot(path=path, full_page=True)
                return
            except Error as error:
                if "Unable to capture screenshot" not in error.message or not left:
                    raise
                self.page.wait_for_timeout(500)

    def text(self, selector: str = "main") -> str:
        return " ".join(self.page.locator(selector).inner_text().split())

    def fits(self) -> bool:
        """Whether nothing sticks out of the window to the right."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


def expect(locator: Any) -> Any:
    """Playwright's assertions about what a page shows, which wait until they are true."""
    from playwright.sync_api import expect as assertions

    assertions.set_options(timeout=PATIENCE)
    return assertions(locator)


@contextmanager
def browser() -> Iterator[Any]:
    """A headless Chromium for all tests of a module."""
    executable = program()
    from playwright.sync_api import sync_playwright

    options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=options)
        yield chromium
        chromium.close()


@contextmanager
def window(chromium: Any, running: Served, **options: Any) -> Iterator[Watched]:
    """A window of its own, in which nothing may go wrong, and nothing be loaded from elsewhere."""
    context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    seen = Watched(page, running)

    def asked(request: Any) -> None:
        if not request.url.startswith((running.address + "/", "data:")):
            seen.elsewhere.append(request.url)

    def said(message: Any) -> None:
        if message.type == "error" and not EXPECTED.match(message.text):
            seen.faults.append(message.text)

    page.on("request", asked)
    page.on("console", said)
    page.on("pageerror", lambda error: seen.faults.append(str(error)))
    yield seen
    context.close()
    assert seen.elsewhere == []
    assert seen.faults == []
