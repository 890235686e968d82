"""The words, conditions and refusals of docs/sql.md; ``sql_reference`` puts them together with what the code says."""

from __future__ import annotations

MEANINGS = {
    "abs": "without its sign",
    "round": "to the nearest whole number, or to so many digits (negative: tens, hundreds); from the middle away from zero",
    "floor": "the next whole number below",
    "ceil": "the next whole number above",
    "greatest": "the greatest that is not NULL",
    "least": "the least that is not NULL",
    "coalesce": "the first that is not NULL",
    "nullif": "NULL if both are equal, else the first",
    "extract": "a date has no time of day; DOW is 0 on Sundays",
    "case": "the first branch whose condition is true; also `CASE value WHEN value THEN …`; without ELSE, NULL",
    "operators": "arithmetic of exact numbers, dates that move by days, comparisons, logic; division by zero is NULL",
    "tests": "as in conditions, see below",
}
TESTS = ("BETWEEN", "IN", "LIKE", "ILIKE", "IS NULL", "IS TRUE", "IS DISTINCT FROM")

CONDITIONS = (
    "income > 0.6 * 50000",
    "100 <= bounded",
    "bounded BETWEEN 10 AND 20",
    "bounded NOT BETWEEN 10 AND 20",
    "region = 'north'",
    "region <> 'north'",
    "region IN ('north', 'mars')",
    "region LIKE '%th'",
    "region NOT LIKE '_a%'",
    "region ILIKE 'NOR%'",
    "married",
    "NOT married",
    "married IS NOT TRUE",
    "married IS UNKNOWN",
    "married IS NULL",
    "married IS DISTINCT FROM TRUE",
    "day >= DATE '2024-01-01'",
    "day BETWEEN '2024-01-01' AND DATE '2024-12-31'",
    "day < DATE '2024-01-01' + 30",
    "income > 30000 AND (married OR NOT region = 'west')",
)

REFUSED = (
    "COUNT(*) FROM survey WHERE income > bounded",
    "COUNT(*) FROM survey WHERE income * 2 > 50000",
    "COUNT(*) FROM survey WHERE EXTRACT(YEAR FROM day) = 2024",
    "AVG(income * 2) FROM survey",
    "COUNT(*) FROM survey WHERE income > MEDIAN(income)",
    "COUNT(*) FROM survey WHERE income > (SELECT 3)",
    "COUNT(*) FROM survey WHERE income = NULL",
    "COUNT(*) FROM survey WHERE income = '30000'",
    "COUNT(*) FROM survey WHERE income",
    "COUNT(*) FROM survey WHERE region < 'north'",
    "COUNT(*) FROM survey WHERE region = north",
    "COUNT(*) FROM survey WHERE income LIKE '3%'",
    "COUNT(*) FROM survey WHERE married = TRUE IS NULL",
    "COUNT(*) FROM survey WHERE income > 1e30",
    "COUNT(*) FROM survey WHERE bounded < 0",
    "income FROM survey",
    "* FROM survey",
    "COUNT(*) FROM survey GROUP BY income",
    "COUNT(*) FROM survey GROUP BY BIN(income, 1000)",
    "COUNT(*) FROM survey GROUP BY BIN(bounded, 10)",
    "COUNT(*) FROM patients",
    "MEDIAN(incone) FROM survey",
    "MEDIAN(region) FROM survey",
    "LENGTH(region) FROM survey",
    "MAX(income) FROM survey",
    "KTH_LARGEST(bounded, 20000) FROM survey",
    "QUANTILE(income, 0.0005) FROM survey",
    "QUANTILE(income, 1) FROM survey",
    "TRIMMED_MEAN(income, 0.0001) FROM survey",
    "COUNT(*) FROM survey; DROP TABLE survey",
)

TEXT = """\
# What can be asked in SQL

This page is written by `python -m tests.sql_reference` from the registry of statistics and from what the code says of each question; a test holds it against the code.

## A question

```text
SELECT   statistics, keys, and what is computed from them        100 * SUM(a) / COUNT(*) AS share
FROM     one data set, or (a whole question) to compute from its answer
WHERE    conditions on records                                   age >= 18 AND region = 'north'
GROUP BY category columns, BIN(column, width), their places in SELECT or their names
HAVING   a condition on what is released                         COUNT(*) > 100
ORDER BY what is released or computed, ASC or DESC
LIMIT    a number of rows, OFFSET so many
```

Two rules explain what is offered and what is not:

1. **After the release, anything goes.** Statistics are released with noise, and charged. What is computed from them, which rows are shown and in which order is post-processing: free, exact, and nobody learns anything more from it. So it does not change the price either: HAVING and LIMIT hide rows, and an aggregate that appears in HAVING, ORDER BY or CASE alone is released and shares ε. The same statistics in another order, rounded or with other names are the same stored answer, free.
2. **Before it, only what is declared.** Statistics are of columns that the controller declared, or declared as [derived from others](configuration.md). A condition compares a column with constants. A released number may be used in a later condition as a literal; that is what adaptive composition allows.

Rows come in the order asked for, else by keys as written, the first slowest, values in declared order. Text between `--` and the end of the line or between `/*` and `*/` is a comment. Names are case-insensitive unless in double quotes. A question has at most {length} characters and nests at most {nesting} deep.

## Statistics

{forms}

{parameters}

### Where bounds are needed, and what is told of how far off an answer is

For a whole table of a public number of records ({records}), ε = 1. *Margin*: the 95 % half-width, known before asking. *Interval*: 95 %, drawn with the answer. *Check*: how many records off the answer is, for [a share of ε](promise.md#how-far-off-an-answer-is). A mean or variance of a selection whose size is secret has an interval instead of a margin.

{levels}

### Typical errors

E|answer − truth| of one statistic with ε = 1 and no check, from exact expectations (where limits are drawn, over limits drawn from a seed). The table has {records} records: incomes at the quantiles (i + ½)/n of a lognormal shape, whole numbers with median 22,026, mean 36,298 and the greatest 1.2 million; the columns with bounds declare 0 to 1,000,000. What is publicly known of a whole table is measured on a selection of 2,858 records.

{errors}

## After the release

Numbers are exact fractions until they are shown, NULL is as in SQL.

{functions}

## Conditions

Three-valued logic is SQL's: a comparison with a missing value is unknown, and records are selected where a condition is true. What is computed of constants is a constant. LIKE means the declared values that match it: `%` is any text, `_` one character, ESCAPE '!' takes their meaning away, and ILIKE ignores the case of A to Z.

{conditions}

## What is refused, and why

Every refusal comes before anything is charged and before any data is read, and none depends on the data.

{refusals}

Signs and words that no question needs:

{words}
"""
