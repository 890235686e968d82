"""A server that gives prepared replies, for tests of the client."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import httpx2

from idios.client import RemoteParty
from idios.client.transport import Transport, open_http
from idios.core.calibration import Level
from idios.core.guarantee import Guarantee
from idios.core.neighbours import Neighbours
from idios.model import Answer

TOKEN = "idios_SECRETSECRETSECRET"


SQL = "SELECT MEDIAN(income)\nFROM people"


ME = {"name": "ana", "role": "analyst"}


ANSWER = Answer(
    id="abc",
    dataset="people",
    columns=("MEDIAN(income)",),
    rows=({"MEDIAN(income)": 29436.5},),
    exact_rows=({"MEDIAN(income)": "29436.5"},),
    epsilon=Fraction(1, 2),
    delta=Fraction(0),
    guarantee=Guarantee(Level.INDIVIDUAL, Fraction(1, 2), Neighbours.REPLACE),
    remaining=Fraction(7, 2),
    margins={"MEDIAN(income)": None},
    margin_reasons={"MEDIAN(income)": "not public"},
)


QUOTE = {
    "dataset": "people",
    "columns": ["MEDIAN(income)"],
    "cost": "1/3",
    "delta": "0",
    "rho": "1/18",
    "pure": True,
    "split": {"MEDIAN(income)": "1/3"},
    "cells": 1,
    "fitted": 1,
    "least_epsilon": "0.05",
    "guarantee": {"level": "individual", "epsilon": "1/3", "delta": "0", "neighbours": "replace", "group": 1},
    "remaining_before": "4",
    "remaining_after": "11/3",
    "affordable": True,
    "more": 10,
    "shortage": None,
    "stored": False,
    "margin": {"MEDIAN(income)": None},
    "margin_reason": {"MEDIAN(income)": "not public"},
}


RUNNING = {"id": "q/1", "state": "running", "step": "counting", "share": 0.25, "elapsed": 1, "href": "http://evil/"}


def failure(status: int, code: str, message: str, **more: Any) -> httpx2.Response:
    error = {"code": code, "message": message, "where": None, "fix": "", "request": "r1", **more}
    return httpx2.Response(status, json={"error": error})


Step = httpx2.Response | Exception | BaseException | Callable[[httpx2.Request], httpx2.Response]


class Script:
    """A server that gives one prepared reply after another, and a clock that only sleeping moves."""

    def __init__(self, *steps: Step) -> None:
        self.steps: list[Step] = [httpx2.Response(200, json=ME), *steps]
        self.requests: list[httpx2.Request] = []
        self.pauses: list[float] = []
        self.now = 1000.0

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        step = self.steps.pop(0)
        if isinstance(step, BaseException):
            raise step
        return step if isinstance(step, httpx2.Response) else step(request)

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.pauses.append(seconds)
        self.now += seconds

    def transport(self, timeout: float = 900, url: str = "https://idios.example.org/") -> Transport:
        http = open_http(url, TOKEN, transport=httpx2.MockTransport(self))
        return Transport(http, TOKEN, timeout, sleep=self.sleep, clock=lambda: self.now, chance=lambda: 0.5)

    def party(self, timeout: float = 900) -> RemoteParty:
        return RemoteParty(self.transport(timeout))

    @property
    def paths(self) -> list[str]:
        return [f"{request.method} {request.url.raw_path.decode()}" for request in self.requests[1:]]


def ok(content: Any, status: int = 200, **headers: str) -> httpx2.Response:
    return httpx2.Response(status, json=content, headers={k.replace("_", "-"): v for k, v in headers.items()})
