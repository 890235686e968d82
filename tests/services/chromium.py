"""A real headless Chromium that is told of every request it makes, for the tests that need one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from idios.evaluation.rendering import PROGRAMS
from tests.services import require_package, require_program


@dataclass
class Opened:
    """A page, what it asked for beyond its own file, and what went wrong in it."""

    page: Any
    requests: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def wait(self, condition: str) -> None:
        """Wait until a condition holds; asked from outside, since the page's own policy forbids it to evaluate text."""
        for _ in range(300):
            if self.page.evaluate(condition):
                return
            self.page.wait_for_timeout(100)
        raise AssertionError(f"never came true: {condition}; {self.faults}")


def program() -> str:
    """The browser's path."""
    require_package("playwright", "dev")
    return require_program(*PROGRAMS)


@contextmanager
def opened(path: Path, *, scheme: str = "light") -> Iterator[Opened]:
    """Open a local file; whatever else it wants is written down and refused."""
    executable = program()
    from playwright.sync_api import sync_playwright

    options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=options)
        page = chromium.new_page(color_scheme=scheme, viewport={"width": 1280, "height": 900})
        seen = Opened(page)

        def answer(route: Any) -> None:
            if route.request.url == path.resolve().as_uri():
                route.continue_()
            else:
                seen.requests.append(route.request.url)
                route.abort()

        page.route("**/*", answer)
        page.on("pageerror", lambda error: seen.faults.append(str(error)))
        page.on("console", lambda message: seen.faults.append(message.text) if message.type == "error" else None)
        page.goto(path.resolve().as_uri())
        yield seen
        chromium.close()
