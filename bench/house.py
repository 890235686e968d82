"""The size of the house, and the ceilings that keep it: ``bench/house.toml``.

    python -m bench.house [--list | --lower | --json | --walk]

It prints what is measured beside its ceiling, and ends with 1 where something is above. ``--lower`` writes what is
measured into ``bench/house.toml`` wherever that is less, but for times. A rise is written by hand, with a page in
``docs/decisions``. ``--walk`` writes ``docs/walk.md``. ``--json`` prints what is measured, without the time of a start,
and that page.

Sizes are read from the source. What a question enters is seen while it is asked and answered: the files and functions
that run, and how often a function that starts is of another package than the one that started before. What importing,
opening and closing run does not count. A question is the first one after opening, with seeded noise, so that the same
functions run each time. Over HTTP the application runs in this process; the client is a plain one, not Idios' own.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import tokenize
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

import idios
from idios.core import sampling

ROOT = Path(__file__).parent.parent
SOURCE = Path(idios.__file__).parent
CEILINGS = ROOT / "bench" / "house.toml"
PAGE = ROOT / "docs" / "walk.md"
STARTED = "import idios; idios.TrustedParty"
SLACK = 1.02
"""A ceiling is at most so many times what is measured."""
VARYING = "start."
"""Times are not held to that, as they vary: their ceilings are lowered by hand."""

Sizes = dict[str, float]
"""What is measured, by ``section.name`` as ``bench/house.toml`` has it."""


# The source


@dataclass(frozen=True)
class Module:
    """One file of the package, parsed."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        """All of them."""
        return len(self.text.splitlines())

    @property
    def sentence(self) -> str:
        """The first sentence of what it says of itself."""
        paragraph, *_ = (ast.get_docstring(self.tree) or "").split("\n\n")
        return " ".join(re.split(r"(?<=\.) ", " ".join(paragraph.split()))[0].replace("``", "`").split("|"))

    @property
    def code(self) -> int:
        """Lines that are no blank, comment or docstring."""
        words: set[int] = set()
        for node in ast.walk(self.tree):
            match node:
                case ast.Expr(ast.Constant(str())):
                    words |= set(range(node.lineno, (node.end_lineno or 0) + 1))
        layout = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        spans = (range(token.start[0], token.end[0] + 1) for token in tokens if token.type not in layout)
        return len({line for span in spans for line in span} - words)

    @property
    def imports(self) -> int:
        """Lines of import statements."""
        imported = (node for node in ast.walk(self.tree) if isinstance(node, ast.Import | ast.ImportFrom))
        return len({line for node in imported for line in range(node.lineno, (node.end_lineno or 0) + 1)})

    @property
    def classes(self) -> Iterator[str]:
        """Public classes."""
        return (node.name for node in self.tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_")

    @property
    def constants(self) -> Iterator[str]:
        """Public constants; type variables are none."""
        for node in self.tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if isinstance(node, ast.Assign | ast.AnnAssign) and not _makes_type_variable(node.value):
                yield from (t.id for t in targets if isinstance(t, ast.Name) and t.id.isupper() and t.id[0] != "_")


def _makes_type_variable(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "TypeVar"


def read_modules(source: Path = SOURCE) -> list[Module]:
    """Every file of the package."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(source.rglob("*.py"))}
    return [Module(path, text, ast.parse(text)) for path, text in texts.items()]


def find_repeated(names: Iterable[str]) -> list[str]:
    """Names that more than one thing has."""
    return sorted(name for name, times in Counter(names).items() if times > 1)


def list_repeated(modules: Iterable[Module]) -> dict[str, list[str]]:
    """The repeated names of each kind."""
    modules = list(modules)
    return {
        "classes": find_repeated(name for module in modules for name in module.classes),
        "constants": find_repeated(name for module in modules for name in module.constants),
        "modules": find_repeated(m.path.stem for m in modules if m.path.stem not in ("__init__", "__main__")),
    }


def measure_source(modules: Iterable[Module]) -> Sizes:
    """How large the source is."""
    modules = list(modules)
    return {
        "source.files": len(modules),
        "source.lines": sum(module.lines for module in modules),
        "source.imports_percent": round(
            100 * sum(module.imports for module in modules) / sum(module.code for module in modules), 2
        ),
        **{f"names_twice.{kind}": len(names) for kind, names in list_repeated(modules).items()},
    }


# What a question enters


@dataclass
class Recorder:
    """Functions of the package that run while recording, in whatever thread."""

    functions: dict[CodeType, None] = field(default_factory=dict)
    """A set in the order of their first calls."""
    switches: int = 0
    _recording: bool = False
    _packages: dict[int, str] = field(default_factory=dict)

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if not self._recording or event != "call" or not _is_function_of_ours(code):
            return
        self.functions[code] = None
        thread, package = threading.get_ident(), _name_package(code)
        self.switches += package != self._packages.get(thread, package)
        self._packages[thread] = package

    @property
    def files(self) -> list[str]:
        """The files that these functions stand in, from the package's root, in the order in which they are entered."""
        return list(dict.fromkeys(Path(code.co_filename).relative_to(SOURCE).as_posix() for code in self.functions))

    @property
    def sizes(self) -> Sizes:
        """What the ceilings are of."""
        return {"files": len(self.files), "functions": len(self.functions), "switches": self.switches}

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


def _is_function_of_ours(code: CodeType) -> bool:
    return bool(code.co_flags & 0x1) and code.co_filename.startswith(str(SOURCE))  # the body of a module or class: no


def _name_package(code: CodeType) -> str:
    first, *rest = Path(code.co_filename).relative_to(SOURCE).parts
    return first if rest else ""


COLUMNS = {
    "income": {"type": "integer", "nullable": False},
    "age": {"type": "integer", "bounds": [0, 120], "nullable": False},
    "region": {"type": "category", "values": ["north", "south", "east", "west"], "nullable": False},
}
ORDERS = """
[ledger]
url = "sqlite:///ledger.db"
key_file = "ledger.key"

[datasets.people]
source = "people.parquet"
unit = "id"
version = "1"
budget = 10
columns.income = { type = "integer", nullable = false }

[datasets.orders]
source = "orders.parquet"
unit = "person"
version = "1"
links = { person = "people.id" }
columns.amount = { type = "integer", bounds = [0, 1000] }
"""
QUESTIONS = {
    "median": ("individual", "SELECT MEDIAN(income) FROM people WHERE age BETWEEN 30 AND 60"),
    "grouped": ("differential", "SELECT region, MEDIAN(income) FROM people GROUP BY region"),
    "join": (
        "differential",
        "SELECT MEDIAN(total) FROM (SELECT SUM(amount) AS total FROM orders "
        "JOIN people ON orders.person = people.id GROUP BY person)",
    ),
}


def make_people() -> pa.Table:
    """A thousand people with an income, an age and a region."""
    n = np.arange(1000)
    regions = np.array(COLUMNS["region"]["values"])[n % 4]
    return pa.table({"id": n, "income": n * 37 % 5000, "age": n % 90, "region": regions})


@contextmanager
def open_party(name: str, folder: Path) -> Iterator[idios.TrustedParty]:
    """The party of one question, with its data in files."""
    parquet.write_table(make_people(), folder / "people.parquet")
    if name == "join":
        n = np.arange(3000)
        parquet.write_table(pa.table({"person": n * 7 % 1000, "amount": n % 400}), folder / "orders.parquet")
        (folder / "idios.toml").write_text(ORDERS)
        opened = idios.TrustedParty.from_config(folder / "idios.toml")
    else:
        level, _ = QUESTIONS[name]
        opened = idios.TrustedParty.open(folder / "people.parquet", budget=10, columns=COLUMNS, protection=level)
    with opened as party:
        yield party


@contextmanager
def seeded() -> Iterator[None]:
    """Noise that is the same each time."""
    with mock.patch.object(sampling.SystemSource, "read", sampling.SeededSource(1).read):
        yield


def record_locally(name: str) -> Recorder:
    """Ask a party in this process."""
    recorder = Recorder()
    _, sql = QUESTIONS[name]
    with (
        tempfile.TemporaryDirectory() as folder,
        seeded(),
        recorder.installed(),
        open_party(name, Path(folder)) as party,
    ):
        recorder.record(lambda: party.query(sql, epsilon=5))
    return recorder


def record_over_http() -> Recorder:
    """Ask the application for one median, in this process and without a socket."""
    from tests.server.office import MEDIAN, open_office, write_office

    recorder = Recorder()
    with tempfile.TemporaryDirectory() as folder, seeded(), recorder.installed():
        office = open_office(write_office(Path(folder)))
        with office.client:
            recorder.record(lambda: office.ask(MEDIAN).raise_for_status())
    return recorder


def record_all() -> dict[str, Recorder]:
    """Each question, once."""
    return {**{name: record_locally(name) for name in QUESTIONS}, "http": record_over_http()}


def measure_questions(recorded: Mapping[str, Recorder]) -> Sizes:
    """What each question enters."""
    return {f"{name}.{size}": value for name, found in recorded.items() for size, value in found.sizes.items()}


WALK = """\
# A question, file by file

Made by `python -m bench.house --walk`: the files whose functions run while a party answers `{sql}` at \
`{level}`, in the order in which they are entered, each with the first sentence that it says of itself. [How it \
works](how-it-works.md) has the idea.

| | file in `src/idios` | |
|---|---|---|
{rows}
"""


def write_walk(files: Iterable[str], modules: Iterable[Module]) -> str:
    """The page that walks through the files of the median."""
    words = {module.path.relative_to(SOURCE).as_posix(): module.sentence for module in modules}
    rows = (f"| {i} | `{name}` | {words[name]} |" for i, name in enumerate(files, 1))
    level, sql = QUESTIONS["median"]
    return WALK.format(sql=sql, level=level, rows="\n".join(rows))


# The start


def measure_start(rounds: int = 5) -> Sizes:
    """The processor's time of an interpreter that imports Idios, as a ratio to one that imports numpy, at best."""
    ours, theirs = (min(_time_start(program) for _ in range(rounds)) for program in (STARTED, "import numpy"))
    return {"start.times_numpy": round(ours / theirs, 2)}


def _time_start(program: str) -> float:
    compiled = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}
    process = subprocess.Popen([sys.executable, "-c", program], env=compiled)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{program} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime


# The ceilings


def read_ceilings(path: Path = CEILINGS) -> Sizes:
    """The most that each size may be."""
    sections: dict[str, dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))
    return {f"{section}.{name}": value for section, sizes in sections.items() for name, value in sizes.items()}


def write_ceilings(ceilings: Sizes, path: Path = CEILINGS) -> None:
    """Write them, and keep the comments at the file's head."""
    head = "\n".join(line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#"))
    sections: dict[str, list[str]] = {}
    for size, value in ceilings.items():
        section, name = size.split(".")
        sections.setdefault(section, []).append(f"{name} = {value}")
    bodies = ("\n".join([f"[{section}]", *lines]) for section, lines in sections.items())
    path.write_text("\n\n".join([head, *bodies]) + "\n", encoding="utf-8")


def find_above(measured: Sizes, ceilings: Sizes) -> list[str]:
    """What is larger than it may be, and by how much."""
    return [
        f"{size} is {value:,}, {round(value - ceilings[size], 2):,} above its ceiling of {ceilings[size]:,}"
        for size, value in measured.items()
        if value > ceilings[size]
    ]


def find_loose(measured: Sizes, ceilings: Sizes) -> list[str]:
    """Which ceilings are so far above what is measured that a gain could be lost again."""
    return [
        f"{size} is {value:,}: lower its ceiling of {ceilings[size]:,} (python -m bench.house --lower)"
        for size, value in measured.items()
        if ceilings[size] > value * SLACK and not size.startswith(VARYING)
    ]


def format_table(measured: Sizes, ceilings: Sizes) -> str:
    """One row a size."""
    rows = [f"{'':<26}{'measured':>10}{'ceiling':>10}"]
    rows += [f"{size:<26}{value:>10,}{ceilings.get(size, float('nan')):>10,}" for size, value in measured.items()]
    return "\n".join(rows)


def main() -> None:
    modules, recorded = read_modules(), record_all()
    measured = measure_source(modules) | measure_questions(recorded)
    walk = write_walk(recorded["median"].files, modules)
    if "--json" in sys.argv[1:]:
        print(json.dumps({"sizes": measured, "walk": walk}))
        return
    if "--walk" in sys.argv[1:]:
        PAGE.write_text(walk, encoding="utf-8")
    measured |= measure_start()
    ceilings = read_ceilings()
    if "--lower" in sys.argv[1:]:
        lowered = {size: min(value, ceilings.get(size, value)) for size, value in measured.items()}
        ceilings = lowered | {size: value for size, value in ceilings.items() if size.startswith(VARYING)}
        write_ceilings(ceilings)
    print(format_table(measured, ceilings))
    if "--list" in sys.argv[1:]:
        for kind, names in list_repeated(modules).items():
            print(f"\n{kind} of the same name:", ", ".join(names) or "none")
        for name, found in recorded.items():
            print(f"\nfiles that run for '{name}':", *sorted(found.files), sep="\n  ")
    if above := find_above(measured, ceilings):
        sys.exit("\n" + "\n".join(above))


if __name__ == "__main__":
    main()
