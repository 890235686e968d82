"""What some tests need beside the packages of ``make test``: PostgreSQL, Spark, nginx, openssl, Chromium.

The variable SERVICES says what becomes of a test whose service is missing:

    any     it is skipped, with the reason: the default
    all     it fails, so that nothing is left out: the default where CI is set
    none    as on a machine that has no service at all: none is looked for, and the tests are skipped
"""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path


class NotInstalled(Exception):
    """A service is not on this machine; ``tests/conftest.py`` skips the test, or fails it."""


def choose_services() -> str:
    """Which services this run uses."""
    return os.environ.get("SERVICES") or ("all" if os.environ.get("CI") else "any")


def require_program(*names: str) -> str:
    """The path of the first of some programs that there is."""
    found = (shutil.which(name) or shutil.which(name, path=off_path()) for name in names)
    program = next(filter(None, found), None) if choose_services() != "none" else None
    if program is None:
        raise NotInstalled(f"{names[0]} is not installed (.ci/services installs it)")
    return program


def off_path() -> str:
    """Where Debian keeps programs off the search path of ordinary users; the latest PostgreSQL first."""
    clusters = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -float(path.parent.name))
    return os.pathsep.join(["/usr/sbin", "/usr/local/sbin", *map(str, clusters)])


def require_package(name: str, extra: str) -> None:
    """Raise unless a package is installed; ``extra`` is what installs it."""
    if find_spec(name) is None:
        raise NotInstalled(f"{name} is not installed (it comes with idios[{extra}])")
