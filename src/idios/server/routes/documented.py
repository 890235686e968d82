"""The errors that each route can give, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from idios.server.schemas import Error

_MEANING = {
    400: "The request cannot be read.",
    401: "No valid token.",
    403: "Not for this caller.",
    404: "Not there, or not for this caller.",
    405: "No such method here.",
    408: "The request took too long to arrive.",
    409: "A budget does not allow it, or the Idempotency-Key was used for another question.",
    410: "The data set was declared anew since.",
    413: "The request is too large.",
    422: "The request says something that is not offered; nothing was charged.",
    429: "Too many requests.",
    500: "Charged, and no answer could be computed; or an unexpected error.",
    503: "Busy, shutting down, or the ledger cannot be reached; send it again.",
}
_ALWAYS = (400, 401, 403, 408, 413, 422, 429, 500, 503)


def errors(*more: int) -> dict[int | str, dict[str, Any]]:
    """The responses that a route documents beside its own."""
    return {status: {"model": Error, "description": _MEANING[status]} for status in sorted({*_ALWAYS, *more})}
