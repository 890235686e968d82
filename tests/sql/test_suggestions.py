"""Suggestions: what is near, and how much work finding it may be."""

import random
import time

from idios.sql.suggestions import MOST_COMPARED, find_nearest, list_some


def test_the_nearest_name_is_found():
    places = ["Baden-Württemberg", "Bayern", "Berlin", "Ärzte"]
    assert find_nearest("Baden Wurttemberg", places) == "Baden-Württemberg"
    assert find_nearest("bayern", places) == "Bayern"
    assert find_nearest("ÄRZTE", places) == "Ärzte"
    assert find_nearest("Hessen", places) is None
    assert find_nearest("", places) is None
    assert find_nearest("x", []) is None


def test_finding_it_is_bounded_whatever_is_written():
    rng = random.Random(5)
    for length in (1, 9, 128, 5000):
        written = "".join(rng.choices("ab", k=length))
        for names in (["".join(rng.choices("ab", k=size)) + str(i) for i in range(3000)] for size in (1, 9, 100)):
            began = time.process_time()
            find_nearest(written, names)
            assert time.process_time() - began < 1
    assert find_nearest("blak", ["x" * MOST_COMPARED, "black"]) is None, "what would take long is not compared"


def test_long_lists_are_cut():
    assert list_some(["a", "b"]) == "a, b"
    assert list_some([]) == ""
