"""The size of the house: files, their length, how many of them one question enters, and names with two meanings.

    python -m bench.house [--list]

A file is entered if a function in it runs while the question is asked and answered; what importing, opening and closing
run does not count. The question is the first one after opening, so that nothing is skipped because it was kept. Over
HTTP the application runs in this process; the client is a plain one, not Idios' own.
"""

from __future__ import annotations

import ast
import statistics
import sys
import tempfile
import threading
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

import idios

ROOT = Path(__file__).parent.parent
SOURCE = Path(idios.__file__).parent
QUESTION = "SELECT MEDIAN(income) FROM people"


@dataclass(frozen=True)
class House:
    """What was counted in one package; None where nobody has counted it."""

    name: str
    files: int
    median: int
    largest: int
    entered: int | None = None
    entered_over_http: int | None = None
    repeated_modules: int | None = None
    repeated_classes: int | None = None
    root_layers: int | None = None


OTHERS = (
    House("h11", 11, 153, 659, 8),
    House("Starlette", 34, 142, 876, entered_over_http=9),
    House("tumult-analytics", 49, 134, 3804),
    House("Idios before", 205, 102, 385, 67, 75, 14, 14, 7),
)
"""As measured when the house was found to have too many rooms."""

ROWS = {
    "files": "files",
    "median": "lines, median file",
    "largest": "lines, largest file",
    "entered": "files that one question enters",
    "entered_over_http": "the same over HTTP",
    "repeated_modules": "module names used twice",
    "repeated_classes": "class names used twice",
    "root_layers": "import layers at the root",
}


class Recorder:
    """Files of the package in which a function was called while recording, in whatever thread."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self._recording = False

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if self._recording and event == "call" and code.co_filename.startswith(str(SOURCE)) and _is_function(frame):
            self.files.add(str(Path(code.co_filename).relative_to(SOURCE)))

    @contextmanager
    def installed(self) -> Iterator[None]:
        """See the calls of this thread and of all that it starts."""
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]

    def record(self, action: Callable[[], object]) -> None:
        """Note what one action enters."""
        self._recording = True
        try:
            action()
        finally:
            self._recording = False


def _is_function(frame: FrameType) -> bool:
    return bool(frame.f_code.co_flags & 0x1)  # CO_OPTIMIZED: a module's and a class's body are not


def files_entered_locally() -> set[str]:
    """Ask a party in this process for one median."""
    recorder = Recorder()
    columns = {"income": {"type": "integer", "nullable": False}}
    with tempfile.TemporaryDirectory() as folder, recorder.installed():
        people = Path(folder) / "people.parquet"
        parquet.write_table(pa.table({"income": np.arange(1000) * 37 % 5000}), people)
        with idios.TrustedParty.open(people, budget=1, columns=columns) as party:
            recorder.record(lambda: party.query(QUESTION, epsilon=1))
    return recorder.files


def files_entered_over_http() -> set[str]:
    """Ask the application for one median, in this process and without a socket."""
    from tests.server.office import open_office, write_office

    recorder = Recorder()
    with tempfile.TemporaryDirectory() as folder, recorder.installed():
        office = open_office(write_office(Path(folder)))
        with office.client:
            recorder.record(lambda: office.ask(QUESTION).raise_for_status())
    return recorder.files


def source_files() -> list[Path]:
    """Every file of the package."""
    return sorted(SOURCE.rglob("*.py"))


def repeated_modules() -> list[str]:
    """Names that more than one module has."""
    return _repeated(path.stem for path in source_files() if path.stem != "__init__")


def repeated_classes() -> list[str]:
    """Names that more than one public class has."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in source_files())
    names = (node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef))
    return _repeated(name for name in names if not name.startswith("_"))


def root_layers() -> list[str]:
    """Layers of the import contract that hold a module of the root; errors, which all may import, do not count."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    [layers] = (contract["layers"] for contract in settings["contracts"] if contract["type"] == "layers")
    return [
        layer
        for layer in layers
        if any(
            (SOURCE / f"{name}.py").is_file()
            for name in layer.replace("idios.", "").replace(":", "|").replace(" ", "").split("|")
            if name != "errors"
        )
    ]


def _repeated(names: Iterable[str]) -> list[str]:
    return sorted(name for name, times in Counter(names).items() if times > 1)


def measure_house(local: set[str], remote: set[str]) -> House:
    """Count everything, here and now."""
    lengths = [len(path.read_text(encoding="utf-8").splitlines()) for path in source_files()]
    return House(
        "Idios now",
        len(lengths),
        round(statistics.median(lengths)),
        max(lengths),
        len(local),
        len(remote),
        len(repeated_modules()),
        len(repeated_classes()),
        len(root_layers()),
    )


def format_table(houses: Iterable[House]) -> str:
    """One row a measure, one column a package."""
    columns = list(houses)
    widths = [max(len(house.name), 6) + 2 for house in columns]
    lines = [" " * 32 + "".join(f"{house.name:>{width}}" for house, width in zip(columns, widths, strict=True))]
    for field, words in ROWS.items():
        values = (getattr(house, field) for house in columns)
        cells = ("–" if value is None else f"{value:,}" for value in values)
        lines.append(f"{words:<32}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)))
    return "\n".join(lines)


def main() -> None:
    local, remote = files_entered_locally(), files_entered_over_http()
    print(format_table([*OTHERS, measure_house(local, remote)]))
    for words, names in (("modules", repeated_modules()), ("classes", repeated_classes())):
        if names:
            print(f"\n{words} with the same name: {', '.join(names)}")
    if "--list" in sys.argv[1:]:
        print("\nentered locally: ", *sorted(local), sep="\n  ")
        print("\nentered over HTTP besides:", *sorted(remote - local), sep="\n  ")


if __name__ == "__main__":
    main()
