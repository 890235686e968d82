"""Which tests need a service: a test is marked by what it uses, so that no author has to remember a marker.

A test needs a service if

1. the test, one of its fixtures, or a helper of the tests that these call, uses anything from ``tests.services``; or
2. one of its parameters is the name of an engine that runs outside this process.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import CodeType, FunctionType, ModuleType

import pytest

SERVICES = "tests.services"
ENGINES = {"postgresql", "spark"}


def needs_service(test: pytest.Item) -> bool:
    """Tell whether a collected test starts PostgreSQL, Spark, nginx, Chromium or a server of its own."""
    if not isinstance(test, pytest.Function):
        return False
    parameters = test.callspec.params.values() if hasattr(test, "callspec") else ()
    if any(value in ENGINES for value in parameters if isinstance(value, str)):
        return True
    fixtures = (definition.func for known in test._fixtureinfo.name2fixturedefs.values() for definition in known)
    return any(_uses_services(function) for function in (test.function, *fixtures))


@cache
def _uses_services(start: object) -> bool:
    """Follow what a function of the tests refers to, through other functions and classes of the tests."""
    pending, visited = [start], set()
    while pending:
        target = pending.pop()
        target = getattr(target, "__wrapped__", target)  # below a decorator such as contextmanager
        if id(target) in visited:
            continue
        visited.add(id(target))
        home = str(target.__name__ if isinstance(target, ModuleType) else getattr(target, "__module__", ""))
        if home.startswith(SERVICES):
            return True
        if not home.startswith("tests."):
            continue
        if isinstance(target, type):
            pending += [member for member in vars(target).values() if isinstance(member, FunctionType)]
        elif isinstance(target, FunctionType):
            names = set(_names(target.__code__))
            if any(name.startswith(SERVICES) for name in names):  # imported inside the function
                return True
            pending += [value for name, value in target.__globals__.items() if name in names]
    return False


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
