"""The sources of randomness: reproducible where asked, never repeated elsewhere."""

import os
import threading
import warnings
from collections.abc import Callable

import numpy as np
import pytest

from idios.core import sampling
from idios.core.sampling import RandomSource, SeededSource, SystemSource, discrete_laplace
from tests.randomness import FALSE_ALARM, chi_square


def test_sources_say_whether_they_are_secure() -> None:
    assert SystemSource().secure
    assert sampling.SYSTEM.secure
    assert not SeededSource(1).secure


def test_a_seed_gives_the_same_draws_and_another_seed_others() -> None:
    draws = [discrete_laplace(10**6, 50_000, SeededSource(seed)) for seed in (1, 1, 2)]
    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])
    # The stream itself is fixed for good: recorded results depend on it.
    assert SeededSource(1).read(8).hex() == "e7ad8942c8ec4ab1"


def test_a_stream_does_not_depend_on_how_it_is_read() -> None:
    whole, parts = SeededSource(7), SeededSource(7)
    assert whole.read(1_000_000) == b"".join(parts.read(size) for size in (1, 15, 300_000, 699_984))


def test_the_system_source_is_used_unless_another_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "SYSTEM", SeededSource(3))
    drawn = discrete_laplace(10, 20)
    assert np.array_equal(drawn, discrete_laplace(10, 20, SeededSource(3)))


def test_system_bytes_look_random() -> None:
    data = np.frombuffer(SystemSource().read(1 << 20), dtype=np.uint8)
    assert chi_square(np.bincount(data, minlength=256), [4096] * 256) > FALSE_ALARM


def keys_taken(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    taken = []
    urandom = os.urandom
    monkeypatch.setattr(os, "urandom", lambda size: taken.append(size) or urandom(size))
    return lambda: len(taken)


def test_the_key_is_replaced_after_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = keys_taken(monkeypatch)
    monkeypatch.setattr(SystemSource, "bytes_per_key", 64)
    source = SystemSource()
    for size, keys in [(32, 1), (32, 1), (1, 2), (63, 2), (64, 3), (1000, 4), (1, 5)]:
        assert len(source.read(size)) == size
        assert taken() == keys


def test_another_process_number_takes_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = keys_taken(monkeypatch)
    source = SystemSource()
    source.read(8)
    monkeypatch.setattr(os, "getpid", lambda: -5)
    source.read(8)
    assert taken() == 2


def read_in_child(source: RandomSource, size: int) -> bytes:
    receive, send = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of forks beside threads; that is the point here
        child = os.fork()
    if child == 0:
        os.write(send, source.read(size))
        os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return data


@pytest.mark.parametrize("same_number", [False, True])
def test_a_child_process_does_not_repeat_its_parent(same_number: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if same_number:  # a number may be used again, or be 1 in every container
        monkeypatch.setattr(os, "getpid", lambda: 1)
    source = SystemSource()
    source.read(1)
    streams = [read_in_child(source, 32), read_in_child(source, 32), source.read(32)]
    assert len(set(streams)) == 3
    # The test has power: a source that minds no forks does repeat itself.
    careless = SeededSource(1)
    assert read_in_child(careless, 32) == read_in_child(careless, 32) == careless.read(32)


def test_threads_share_a_source_without_sharing_a_stream() -> None:
    source = SystemSource()
    blocks: list[bytes] = []

    def work() -> None:
        mine = [source.read(16) for _ in range(2000)]
        blocks.extend(mine)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(blocks)) == len(blocks) == 8000
