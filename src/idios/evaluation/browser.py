"""PNGs of the figures, drawn by a headless Chromium if there is one; nothing else on the machine can run plotly."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from html import unescape
from pathlib import Path

from idios.errors import IdiosError
from idios.evaluation.content import Figure
from idios.evaluation.page import export_page

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--no-first-run",
)
PATIENCE = 180


def find() -> str | None:
    """The browser's program, None if there is none on the search path."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


def write_pictures(figures: Sequence[Figure], folder: Path, program: str) -> list[Path]:
    """Draw every figure, light and dark, into ``folder``: name.png and name-dark.png."""
    with tempfile.TemporaryDirectory(prefix="idios-") as place:
        page = Path(place) / "figures.html"
        page.write_text(export_page(figures), encoding="utf-8")
        command = [
            program,
            *OPTIONS,
            f"--user-data-dir={place}/profile",
            "--virtual-time-budget=60000",
            "--dump-dom",
            page.as_uri(),
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise IdiosError(f"{program} could not draw the figures: {error}") from error
    found = re.search(r'<pre id="images">(.*?)</pre>', done.stdout, flags=re.DOTALL)
    if found is None:
        raise IdiosError(f"{program} drew no figures (exit code {done.returncode})")
    written = []
    for name, address in json.loads(unescape(found[1])).items():
        path = folder / f"{name}.png"
        path.write_bytes(base64.b64decode(address.partition(",")[2]))
        written.append(path)
    return written
