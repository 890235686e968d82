"""docs/report.md is what the code makes of it, and good enough to be published."""

from __future__ import annotations

import re

from tests.household_report import DOCUMENT, write_report


def test_the_report_is_the_documents() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == write_report(), "run python -m tests.household_report"


def test_its_figures_are_near_the_truth() -> None:
    errors = [float(error) for error in re.findall(r"\| ([+-][0-9.]+) % \|", DOCUMENT.read_text(encoding="utf-8"))]
    assert len(errors) == 24 + 2 + 1 + 4 + 5
    assert sorted(map(abs, errors))[-2] < 2
    assert max(map(abs, errors)) < 10  # the 20th largest of 50,000
