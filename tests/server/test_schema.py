"""schemathesis: whatever the OpenAPI document allows or forbids, no 5xx and no answer that it does not document."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.server.office import BY_REGION, MEDIAN, Office, open_office, write_office

CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


REAL = [None, MEDIAN, BY_REGION, "SELECT KTH_LARGEST(age, 2), AVG(age) FROM people WHERE region = 'north'"]
"""Text is hardly ever a question by chance, so now and then a real one is put in its place."""

LIKELY = settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)


@pytest.mark.slow
@pytest.mark.parametrize("who", ["ada", "grace"])
def test_no_server_error_and_nothing_undocumented(tmp_path: Path, who: str) -> None:
    fuzzed = open_office(write_office(tmp_path))
    headers = {"Authorization": f"Bearer {getattr(fuzzed.tokens, who)}"}
    document = schemathesis.openapi.from_asgi("/openapi.json", fuzzed.client.app)
    seen: Counter[int] = Counter()
    for found in document.get_all_operations():
        operation = found.ok()
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

            @LIKELY
            @given(case=operation.as_strategy(generation_mode=mode), sql=st.sampled_from(REAL))
            def sent(case: Any, sql: str | None) -> None:
                if sql is not None and isinstance(case.body, dict) and "sql" in case.body:
                    case.body |= {"sql": sql, "epsilon": "0.05"}
                response = case.call(headers=headers)
                seen[response.status_code] += 1
                case.validate_response(response, checks=CHECKS)

            # What takes nothing cannot be given anything wrong.
            with suppress(Unsatisfiable):
                sent()
    assert seen.total() > 300
    assert seen[200] > 50


def test_the_document_has_examples(office: Office) -> None:
    document = office.client.get("/openapi.json").json()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"], (method, path)
            assert operation["description"], (method, path)
            assert {"422", "500", "503"} <= operation["responses"].keys()
            if "requestBody" in operation:
                reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
                body = document["components"]["schemas"][reference.rpartition("/")[2]]
                assert any("examples" in field or "default" in field for field in body["properties"].values()), path


def test_the_document_says_that_limits_may_be_told(office: Office) -> None:
    """Only where values were clipped: pairs of exact numbers, by row and statistic."""
    schemas = office.client.get("/openapi.json").json()["components"]["schemas"]
    answer = schemas["Answer"]
    pair = answer["properties"]["clipped"]["items"]["additionalProperties"]
    assert (pair["minItems"], pair["maxItems"], pair["items"]["type"]) == (2, 2, "string")
    assert "clipped" not in answer["required"]
    listed = schemas["AnswerPage"]["properties"]["answers"]["items"]
    assert listed["properties"]["clipped"]["items"]["items"]["anyOf"][0]["minItems"] == 2
    assert "clipped" not in listed["required"]
