"""From the text of a question to what it asks: lexer, parser, names, and a reader for each part of a SELECT.

It knows no ε, no noise and no engine. ``reader`` is where it begins, and keeps what the planner prepared of a question.
"""
