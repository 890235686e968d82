"""The text before any parser: caps, characters, words, and the place that a refusal names."""

import pickle

import pytest

from idios.errors import IdiosError, QuestionRefused
from idios.sql.lexer import MAX_LENGTH, MAX_NESTING, tokenize
from idios.sql.parser import parse

REFUSED = [
    ("SELECT COUNT(*) FROM t # x", "a comment is written --", (1, 24)),
    ("SELECT COUNT(*) FROM t /* all", "a comment does not end", (1, 24)),
    ("SELECT COUNT(*) FROM t /* all /* of */ it */", "a comment stands in a comment", (1, 24)),
    ("SELECT COUNT(*) FROM t *", "a star stands in", (1, 24)),
    ("SELECT MAX(*) FROM t", "a star stands in", (1, 12)),
    ("SELECT x, * FROM t", "a star stands in", (1, 11)),
    ("SELECT COUNT(*) FROM t; DROP TABLE t", "one question at a time", (1, 23)),
    ("SELECT COUNT(*) FROM t;;", "one question at a time", (1, 23)),
    ("SELECT SUM(t.) FROM t", "a dot stands between", (1, 13)),
    ("SELECT t.* FROM t", "a dot stands between", (1, 9)),
    ("SELECT SUM(t .x) FROM t", "without spaces", (1, 14)),
    ("SELECT COUNT(*) FROM t .", "a dot stands between", (1, 24)),
    ("SELECT COUNT(*) FROM t WHERE x = (SELECT 1 FROM t)", "a SELECT within another", (1, 35)),
    ("SELECT DISTINCT x FROM t", "DISTINCT is supported in COUNT", (1, 8)),
    ("SELECT MEDIAN(DISTINCT x) FROM t", "DISTINCT is supported in COUNT", (1, 15)),
    ("SELECT COUNT(*) FROM t WHERE x > 1 % 2", "remainders are not supported", (1, 36)),
    ("SELECT COUNT(*) FROM t WHERE x::int > 1", "casts and parameters", (1, 31)),
    ("SELECT COUNT(*) FROM t WHERE x > :p", "casts and parameters", (1, 34)),
    ("SELECT COUNT(*) FROM t WHERE x > ?", "parameters are not supported", (1, 34)),
    ("SELECT COUNT(*) FROM t WHERE x = $1", "parameters are not supported", (1, 34)),
    ("SELECT COUNT(*) FROM t WHERE x = $$a$$", "parameters are not supported", (1, 34)),
    ("SELECT CAST(x AS INT) FROM t", "casts are not supported", (1, 8)),
    ("SELECT SUM(x) OVER w FROM t WINDOW w AS ()", "WINDOW is not supported: write OVER", (1, 29)),
    ("SELECT SUM(x) OVER w FROM t", "OVER is written function(…) OVER (PARTITION BY key)", (1, 15)),
    ("SELECT SUM(SUM(x)) OVER (ORDER BY y) FROM t", "running totals and frames are made of the rows", (1, 26)),
    ("SELECT SUM(SUM(x)) OVER (PARTITION BY a ROWS 1 PRECEDING) FROM t", "running totals and frames", (1, 41)),
    ("SELECT COUNT(DISTINCT x) OVER () FROM t", "OVER is written", (1, 26)),
    ("SELECT SUM(x) FILTER (WHERE x > 1) FROM t", "FILTER is not supported", (1, 15)),
    ("SELECT COUNT(*) FROM t UNION SELECT 1", "questions cannot be combined", (1, 24)),
    ("WITH a AS (SELECT 1) SELECT 1 FROM a", "common table expressions", (1, 1)),
    ("SELECT COUNT(*) FROM t WHERE filter > 3", 'a name of that spelling is written "filter"', (1, 30)),
    ("SELECT MAX(limit) FROM t", 'a name is written "limit"', (1, 12)),
    ("SELECT COUNT(*) AS limit FROM t", 'a name is written "limit"', (1, 20)),
    ("SELECT COUNT(*) FROM 'people.csv'", "strings are values", (1, 22)),
    ("SELECT COUNT(*) AS 'n' FROM t", "AS stands between a statistic", (1, 17)),
    ("SELECT COUNT(*) 'n' FROM t", "strings are values", (1, 17)),
    ("SELECT COUNT(*), FROM t", "a comma stands between two items", (1, 16)),
    ("SELECT COUNT(*) FROM t WHERE x IN (1,)", "a comma stands between two items", (1, 37)),
    ("SELECT COUNT(*) FROM t GROUP BY a,", "a comma stands between two items", (1, 34)),
    ("SELECT , COUNT(*) FROM t", "a comma stands between two items", (1, 8)),
    ("SELECT MAX(, x) FROM t", "a comma stands between two items", (1, 12)),
    ("SELECT COUNT(*) AS FROM t", "AS stands between", (1, 17)),
    ("SELECT AS COUNT(*) FROM t", "AS stands between", (1, 8)),
    ("SELECT COUNT(* EXCLUDE x) FROM t", "COUNT(*) is written without anything else", (1, 14)),
    ("SELECT COUNT(* FROM t", "a parenthesis is not closed", (1, 22)),
    ("SELECT COUNT(x FROM t", "a parenthesis is not closed", (1, 22)),
    ("SELECT COUNT(*) FROM t WHERE x BETWEEN SYMMETRIC 3 AND 1", "BETWEEN is followed by two", (1, 40)),
    ("SELECT COUNT(*)) FROM t", "a parenthesis is closed", (1, 16)),
    ("SELECT COUNT(*) FROM t WHERE x = 'a", "the string that begins here does not end: a single quote", (1, 34)),
    ("SELECT COUNT(*) FROM t WHERE x = 'it's'", "or the string goes on: a single quote within it is written", (1, 38)),
    ("SELECT COUNT(*) FROM t WHERE x = ‘a’", "quotes are straight: 'text' is a string", (1, 34)),
    ('SELECT COUNT(*) FROM "t', "the name that begins here does not end: a double quote", (1, 22)),
    ("SELECT COUNT(*) FROM `t`", "double quotes", (1, 22)),
    ("SELECT COUNT(*) FROM [t]", "has no meaning", (1, 22)),
    ("SELECT COUNT(*) FROM t WHERE x = 0x1F", "a space or a sign is missing", (1, 35)),
    ("SELECT COUNT(*) FROM t WHERE x = 1_000", "a space or a sign is missing", (1, 35)),
    ("SELECT COUNT(*) FROM t WHERE x = E'a'", "a space or a sign is missing", (1, 35)),
    ('SELECT COUNT(*) FROM "a""b"', "a space or a sign is missing", (1, 25)),
    ("SELECT COUNT(*) FROM t WHERE x < 1e999", "an exponent of at most", (1, 34)),
    ("SELECT COUNT(*) FROM t WHERE x < 1e99999999999", "an exponent of at most", (1, 34)),
    (f"SELECT COUNT(*) FROM t WHERE x < {'9' * 101}", "at most 100 digits", (1, 34)),
    (f"SELECT COUNT(*) FROM {'t' * 129}", "at most 128 characters", (1, 22)),
    ("SELECT COUNT(*) FROM t\0", "invisible character U+0000", (1, 23)),
    ("SELECT COUNT(*) FROM t WHERE c = '\u202ea'", "invisible character U+202E", (1, 35)),
    ("SELECT COUNT(*) FROM t\ufeff", "invisible character U+FEFF", (1, 23)),
    ("SELECT COUNT(*) FROM t WHERE c = '\ud800'", "invisible character U+D800", (1, 35)),
    ("SELECT\u00a0COUNT(*) FROM t", "has no meaning", (1, 7)),
    ("SELECT COUNT(*) FROM t WHERE x = ²", "'²' is neither a name nor a number", (1, 34)),
    ("SELECT COUNT(*) FROM t WHERE x = ٣", "has no meaning", (1, 34)),
    ("ſELECT COUNT(*) FROM t", "A question reads", (1, 1)),
    ("COPY t TO 'file'", "A question reads", (1, 1)),
    ("ATTACH 'a.db'", "A question reads", (1, 1)),
    ("PRAGMA version", "A question reads", (1, 1)),
    ("(SELECT COUNT(*) FROM t)", "A question reads", (1, 1)),
    ("", "A question reads", None),
    ("   ", "A question reads", None),
    (";", "A question reads", None),
]


@pytest.mark.parametrize(("sql", "fragment", "position"), REFUSED)
def test_refusals_name_the_place(sql, fragment, position):
    with pytest.raises(QuestionRefused) as caught:
        parse(tokenize(sql))
    assert fragment in str(caught.value)
    assert caught.value.position == position


@pytest.mark.parametrize("thing", [None, 3, b"SELECT 1", ["SELECT"]])
def test_only_text_is_a_question(thing):
    with pytest.raises(QuestionRefused, match="a question is text"):
        tokenize(thing)


def test_length_and_nesting_are_capped():
    with pytest.raises(QuestionRefused, match="at most 20,000 characters"):
        tokenize("SELECT " + " " * MAX_LENGTH)
    for opened in ("(", "NOT ", "NOT (", "NOT NOT ("):
        weight = opened.count("(") + opened.count("NOT")
        deepest = MAX_NESTING // weight
        for times, allowed in ((deepest, True), (deepest + 1, False), (3000, False)):
            sql = f"SELECT COUNT(*) FROM t WHERE {opened * times} x > 1 {')' * opened.count('(') * times}"
            if allowed:
                tokenize(sql)
            else:
                with pytest.raises(QuestionRefused, match=r"nest at most|at most 20,000"):
                    tokenize(sql)


def test_depth_is_counted_by_branch_not_in_total():
    tokenize("SELECT COUNT(*) FROM t WHERE " + " AND ".join(["NOT (x > 1)"] * 500))  # does not raise


def test_what_is_quoted_is_not_read():
    words = tokenize("SELECT MAX(\"limit\") FROM t WHERE c = 'a -- b; SELECT *' AND d = 'it''s'").tokens
    assert [word.text for word in words[-5:]][::2] == ["'a -- b; SELECT *'", "d", "'it''s'"]


def test_a_comment_is_no_token():
    text = tokenize("SELECT COUNT(*) -- all; of it\nFROM t /* 'x */ WHERE c = '--' --")
    assert [token.text for token in text.tokens][5:] == ["FROM", "t", "WHERE", "c", "=", "'--'"]


def test_a_refusal_shows_a_caret_under_the_place():
    with pytest.raises(QuestionRefused) as caught:
        tokenize("SELECT COUNT(*)\n  FROM t\tFETCH u")
    assert str(caught.value).split("\n")[1:] == ["    FROM t FETCH u", "           ^"]
    assert isinstance(caught.value, IdiosError)


def test_a_long_line_is_shown_in_part():
    with pytest.raises(QuestionRefused) as caught:
        tokenize("SELECT COUNT(*) FROM t WHERE x IN (" + ", ".join(["1"] * 200) + ") FETCH 3" + " " * 300)
    _, shown, caret = str(caught.value).split("\n")
    assert len(shown) < 110
    assert shown[caret.index("^") :].startswith("FETCH")


def test_a_refusal_survives_being_sent_between_processes():
    with pytest.raises(QuestionRefused) as caught:
        parse(tokenize("SELECT x, *"))
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.position) == (str(caught.value), caught.value.position)
