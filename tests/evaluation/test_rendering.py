"""The page of a report: what it escapes, and what it may load."""

from __future__ import annotations

from idios.evaluation import rendering
from idios.evaluation.document import Figure, Panel, Section, Series, Table


def test_text_is_escaped() -> None:
    figure = Figure("f", "</script><b>", (Panel((Series("<i>", "local", (1.0,), (2.0,)),), "x", "y"),), "a < b")
    text = rendering.render_report(
        "t", "l", [Section("s", "<u>", "1 < 2", (figure,), (Table("t", "<t>", ("<h>",), (("<c>",),)),))]
    )
    assert "</script><b>" not in text
    assert "<c>" not in text
    assert "<u>" not in text


def test_the_policy_allows_no_request() -> None:
    assert "default-src 'none'" in rendering.POLICY
    assert "http" not in rendering.POLICY
