"""No dependency can be installed with a vulnerability that was known when this was written."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
MENDED = {
    "cryptography": "46.0.7",
    "h11": "0.16.0",
    "jinja2": "3.1.6",
    "python-multipart": "0.0.30",
    "starlette": "1.3.1",
}
"""The first version without each of the vulnerabilities that pyproject.toml names."""


@pytest.mark.parametrize("name", MENDED)
def test_the_lower_bound_lies_above_known_vulnerabilities(name: str) -> None:
    listed = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["server"]]
    (found,) = (one for one in map(Requirement, listed) if one.name == name)
    (least,) = (Version(one.version) for one in found.specifier if one.operator == ">=")
    assert least >= Version(MENDED[name])
