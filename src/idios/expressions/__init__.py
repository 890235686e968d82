"""Expressions and conditions: one language, its ranges, and the sets of points for which a condition is true.

A function of the language is known here alone, but for its SQL (``data.sql``). It knows no ε and reads no data.
"""
