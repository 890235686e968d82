"""Stylesheet, script and mark: their addresses change with their content, so that browsers may keep them for ever."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files

from fastapi import APIRouter, Response

from idios.server.problems import NO_SUCH_PAGE, Refused

TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
FOR_EVER = "public, max-age=31536000, immutable"

router = APIRouter()


@dataclass(frozen=True)
class Asset:
    """A file as it is served."""

    address: str
    content: bytes
    media_type: str


def _read(name: str) -> Asset:
    content = (files("idios.server.console") / "static" / name).read_bytes()
    stem, ending = name.split(".")
    return Asset(f"/console/assets/{stem}.{hashlib.sha256(content).hexdigest()[:16]}.{ending}", content, TYPES[ending])


ASSETS = {name: _read(name) for name in ("console.css", "console.js", "mark.svg")}
_BY_ADDRESS = {asset.address: asset for asset in ASSETS.values()}


@router.get("/console/assets/{name}")
async def asset(name: str) -> Response:
    """One file, for every caller: it holds nothing private."""
    found = _BY_ADDRESS.get(f"/console/assets/{name}")
    if found is None:
        raise Refused(NO_SUCH_PAGE)
    return Response(found.content, media_type=found.media_type, headers={"Cache-Control": FOR_EVER})
