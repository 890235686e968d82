"""Liveness and readiness, for monitoring without a token; metrics, for the controller."""

from __future__ import annotations

import logging

from fastapi import APIRouter, Response

from idios.errors import DataChanged, LedgerError
from idios.server.auth import Controller
from idios.server.http_errors import Refused, to_problem
from idios.server.routes.documented import errors
from idios.server.schemas import Health
from idios.server.service import Served

log = logging.getLogger("idios.server")

router = APIRouter(tags=["health"])


@router.get("/healthz", responses=errors(), summary="The process lives")
async def healthz() -> Health:
    """Says ok as long as the process answers."""
    return Health(status="ok")


@router.get("/readyz", responses=errors(), summary="Questions can be answered")
def readyz(service: Served) -> Health:
    """Says ready if the ledger can be written and is what was signed, and every file is the one that was opened.

    It says verifying while the whole chain is being read, and questions are answered meanwhile. It touches no data.
    """
    ledger = service.party.ledger
    try:
        ledger.check()
        for dataset in service.party.datasets.values():
            dataset.check_unchanged()
    except (LedgerError, DataChanged) as error:
        log.error("not ready", extra={"fields": {"problem": str(error)}})
        raise Refused(to_problem(error)) from None
    return Health(status="verifying" if ledger.health.verifying else "ready")


@router.get("/metrics", responses=errors(), summary="Metrics for Prometheus", response_class=Response)
def metrics(_: Controller, service: Served) -> Response:
    """Requests and charges, in Prometheus' text format; nothing here depends on the data."""
    service.metrics.running.set(service.questions.taken)
    return Response(service.metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")
