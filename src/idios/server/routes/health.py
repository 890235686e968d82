"""Liveness and readiness, for monitoring without a token; metrics, for the controller."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from fastapi import APIRouter, Response

from idios.errors import DataChanged, LedgerError, SourceUnavailable
from idios.server.auth import Controller
from idios.server.http_errors import Refused, to_problem
from idios.server.messages import document, document_errors, encode_reply
from idios.server.service import Served

log = logging.getLogger("idios.server")

router = APIRouter(tags=["health"])


@dataclass(frozen=True)
class Health:
    """Whether the server can work."""

    status: str


@router.get("/healthz", response_model=document(Health), responses=document_errors(), summary="The process lives")
async def healthz() -> Response:
    """Says ok as long as the process answers."""
    return encode_reply(Health("ok"))


@router.get(
    "/readyz", response_model=document(Health), responses=document_errors(), summary="Questions can be answered"
)
def readyz(service: Served) -> Response:
    """Says ready if the ledger can be written and is what was signed, and all data is there and promised as opened.

    It says verifying while the whole chain is being read, and questions are answered meanwhile. It touches no data.
    """
    ledger = service.party.ledger
    try:
        ledger.check()
        ledger.check_promises({name: dataset.promise for name, dataset in service.party.datasets.items()})
        for dataset in service.party.datasets.values():
            dataset.check_ready()
    except (LedgerError, DataChanged, SourceUnavailable) as error:
        log.error("not ready", extra={"fields": {"problem": str(error)}})
        raise Refused(to_problem(error)) from None
    return encode_reply(Health("verifying" if ledger.health.verifying else "ready"))


@router.get("/metrics", responses=document_errors(), summary="Metrics for Prometheus", response_class=Response)
def metrics(_: Controller, service: Served) -> Response:
    """Requests and charges, in Prometheus' text format; nothing here depends on the data."""
    service.metrics.running.set(service.questions.taken)
    return Response(service.metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")
