"""Files of somebody who wants more than to hand over data: each format, made hostile with its own writers."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import socket
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import deltalake
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pyreadstat
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from idios import TrustedParty
from idios.data.backend import describe_source, open_source
from idios.data.formats import reader_process, resources
from idios.data.formats.files import find_files
from idios.data.formats.foreign_files import find_below
from idios.errors import SourceError
from tests.conformance.plans import category, dataset, whole

DATA = dataset(whole("n"))
BOTH = dataset(whole("n"), category("c", "a", "b"))
SCHEMA = pa.schema([("n", pa.int64()), ("c", pa.string())])
PEOPLE = pa.table({"n": [1, 2], "c": ["a", "b"]}, schema=SCHEMA)
OTHERS = pa.table({"n": [41, 42, 43], "c": ["a", "a", "a"]}, schema=SCHEMA)
LEAVES = "not below it"

CALLED: list[object] = []


class Spy:
    """What a file names in the hope that it is called."""

    def __init__(self, *given: object) -> None:
        CALLED.append(given)
        raise RuntimeError("code that a file named was run")

    def __reduce__(self) -> Any:
        return Spy, ()


@pytest.fixture
def server() -> Iterator[str]:
    """An address of this machine that nobody may connect to."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(BlockingIOError):
            listening.accept()


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file of somebody else."""
    path = tmp_path / "outside" / "others.parquet"
    path.parent.mkdir()
    pq.write_table(OTHERS, path)
    return path


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a test of what is too large need not be as large as a machine."""
    monkeypatch.setattr(resources, "limit_reader", lambda: 0)
    monkeypatch.setattr(reader_process, "LEAST", 192)


def refuse_everywhere(source: object, message: str, data: Any = DATA) -> None:
    """Neither what proposes columns nor what opens a data set reads the file."""
    for read in (lambda: describe_source(source), lambda: open_source(source, data)):
        with pytest.raises(SourceError, match=message):
            read()


# Iceberg.


def write_iceberg(folder: Path, *added: str) -> Path:
    """A table of its own files, and of others that it names."""
    folder.mkdir(exist_ok=True)
    catalog = SqlCatalog("test", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.people", schema=SCHEMA)
    table.append(PEOPLE)
    if added:
        table.add_files(list(added))
    catalog.close()
    return folder / "shop" / "people"


def edit_iceberg(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    newest = max((folder / "metadata").glob("*.metadata.json"))
    metadata = json.loads(newest.read_text())
    change(metadata)
    newest.write_text(json.dumps(metadata))


CODE = {
    "py-io-impl": f"{__name__}.Spy",
    "py-catalog-impl": f"{__name__}.Spy",
    "write.py-location-provider.impl": f"{__name__}.Spy",
    "catalog-impl": f"{__name__}.Spy",
    "io-impl": f"{__name__}.Spy",
    "encryption.key-id": "1",
    "s3.endpoint": "http://127.0.0.1:9",
    "DEFAULT_SCHEME": "http",
    "DEFAULT_NETLOC": "127.0.0.1:9",
}


@pytest.mark.slow
def test_properties_of_an_iceberg_table_are_no_settings_of_its_reader(tmp_path: Path) -> None:
    folder = write_iceberg(tmp_path / "shop")
    edit_iceberg(folder, lambda metadata: metadata["properties"].update(CODE))
    CALLED.clear()
    assert [column for column, *_ in describe_source(folder)] == ["n", "c"]
    with open_source(folder, DATA) as backend:
        assert backend.rows() == 2
    assert CALLED == []


@pytest.mark.slow
def test_a_command_in_the_metadata_of_an_iceberg_table_does_not_run(tmp_path: Path) -> None:
    """As a controller meets it: a data set is opened, and a question asked."""
    folder = write_iceberg(tmp_path / "shop")
    edit_iceberg(folder, lambda metadata: metadata["properties"].update({"py-io-impl": "subprocess.Popen"}))
    with TrustedParty.open(folder, name="people", columns={"n": "integer"}, budget=5) as party:
        assert party.query("SELECT COUNT(*) FROM people", 1).value == 2


@pytest.mark.slow
def test_an_iceberg_table_names_no_file_outside_of_its_folder(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "shop").mkdir()
    link = tmp_path / "shop" / "shop" / "people" / "data" / "link.parquet"
    named = [str(outside), f"file://{outside}", f"file:{outside}", f"file://{tmp_path}/shop/../outside/others.parquet"]
    for i, each in enumerate(named):
        with pytest.raises(SourceError, match=LEAVES):
            open_source(write_iceberg(tmp_path / f"{i}", each), DATA)
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    refuse_everywhere(write_iceberg(tmp_path / "shop", f"file://{link}"), LEAVES)


@pytest.mark.slow
def test_the_metadata_of_an_iceberg_table_lies_below_its_folder(tmp_path: Path, server: str) -> None:
    folder = write_iceberg(tmp_path / "shop")
    copied = shutil.copytree(folder, tmp_path / "copy" / "people")

    def name_list(place: str) -> Callable[[dict[str, Any]], None]:
        def change(metadata: dict[str, Any]) -> None:
            for snapshot in metadata["snapshots"]:
                snapshot["manifest-list"] = place

        return change

    (lists,) = (copied / "metadata").glob("snap-*.avro")
    refuse_everywhere(copied, LEAVES)  # its list of manifests is that of the other folder
    edit_iceberg(copied, name_list(f"file://{lists}"))
    refuse_everywhere(copied, LEAVES)  # and so are the manifests
    for address in (f"{server}/list.avro", f"s3://{server.removeprefix('http://')}/list.avro", "hdfs://127.0.0.1/x"):
        edit_iceberg(copied, name_list(address))
        refuse_everywhere(copied, LEAVES)


def test_an_iceberg_table_without_its_snapshot_is_damaged_and_not_empty(tmp_path: Path) -> None:
    folder = write_iceberg(tmp_path / "shop")
    edit_iceberg(folder, lambda metadata: metadata.update({"current-snapshot-id": 7}))
    with pytest.raises(SourceError, match="cannot be read as an Iceberg table: it is damaged"):
        open_source(folder, DATA)


@pytest.mark.slow
def test_links_in_an_iceberg_folder_lead_nowhere_else(tmp_path: Path) -> None:
    folder = write_iceberg(tmp_path / "shop")
    newest = max((folder / "metadata").glob("*.metadata.json"))
    newest.rename(tmp_path / "elsewhere.json")
    newest.symlink_to(tmp_path / "elsewhere.json")
    refuse_everywhere(folder, "is a link that leads out of the folder")


@pytest.mark.slow
def test_an_iceberg_folder_that_is_a_link_is_read(tmp_path: Path) -> None:
    folder = write_iceberg(tmp_path / "shop")
    (tmp_path / "current").symlink_to(folder)
    with open_source(tmp_path / "current", DATA) as backend:
        assert backend.rows() == 2


def test_what_a_table_names_is_taken_as_it_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    (folder / "data" / "%2e%2e").mkdir(parents=True)
    (tmp_path / "other.parquet").touch()
    inside = [folder / "data" / name for name in ("plain.parquet", "50%.parquet", "a#b?.parquet", "%2e%2e/x.parquet")]
    for path in inside:
        path.touch()
        named = [str(path), f"file:{path}", f"file://{path}", f"file://localhost{path}", str(path.relative_to(folder))]
        for each in [*named, f"{folder}/data/../{path.relative_to(folder)}"]:
            assert find_below(folder, each) == path.resolve()
    os.mkfifo(folder / "pipe")
    absent = ["data/absent", "", ".", "data", "pipe", "other.parquet", "../other.parquet", "data/%2e%2e/../../other"]
    absent += [
        f"{tmp_path}/other.parquet",
        f"file://host{inside[0]}",
        f"http://host{inside[0]}",
        "%2e%2e/other.parquet",
    ]
    absent += [f"{folder} other/x", "/dev/zero", "file:///etc/hostname", "~/x", "a" * 5000]
    for each in absent:
        with pytest.raises((SourceError, OSError)) as raised:
            find_below(folder, each)
        assert len(str(raised.value)) < 6000


# Delta.


def write_delta(folder: Path) -> Path:
    deltalake.write_deltalake(str(folder), PEOPLE)
    return folder


def edit_delta(folder: Path, change: Callable[[dict[str, Any]], object]) -> list[dict[str, Any]]:
    log = folder / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        change(action)
    log.write_text("\n".join(map(json.dumps, actions)))
    return actions


@pytest.mark.slow
def test_a_delta_table_names_no_file_outside_of_its_folder(tmp_path: Path, outside: Path, server: str) -> None:
    named = [str(outside), f"file://{outside}", "../outside/others.parquet", "%2e%2e/outside/others.parquet"]
    named += [f"{server}/others.parquet", f"s3://{server.removeprefix('http://')}/others.parquet", "link.parquet"]
    for i, each in enumerate(named):
        folder = write_delta(tmp_path / f"{i}")
        (folder / "link.parquet").symlink_to(outside)
        size = {"size": outside.stat().st_size, "path": each, "stats": None}
        edit_delta(folder, lambda action, size=size: action.get("add", {}).update(size) if "add" in action else None)  # type: ignore[misc]
        with pytest.raises(SourceError, match=LEAVES):
            open_source(folder, DATA)


def write_sidecar(folder: Path, sidecar: str, size: int, name: str) -> None:
    """A checkpoint that says that more of it is in another file."""
    features = {"minReaderVersion": 3, "minWriterVersion": 7}
    features |= {kind: ["v2Checkpoint"] for kind in ("readerFeatures", "writerFeatures")}
    protocol = {"protocol": features}
    metadata = next(action for action in edit_delta(folder, lambda action: None) if "metaData" in action)
    told = {"commitInfo": {"timestamp": 0}}
    log = folder / "_delta_log"
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, [told, protocol, metadata])))
    (log / f"{1:020}.json").write_text(json.dumps(told))
    parts = {"sidecar": {"path": sidecar, "sizeInBytes": size, "modificationTime": 0}}
    actions = [{"checkpointMetadata": {"version": 1}}, protocol, metadata, parts]
    if name.endswith(".json"):
        (log / name).write_text("\n".join(map(json.dumps, actions)))
    else:
        columns = {key: [action.get(key) for action in actions] for key in ("protocol", "metaData", "sidecar")}
        pq.write_table(
            pa.Table.from_pydict({"protocol": columns["protocol"], "sidecar": columns["sidecar"]}), log / name
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", [f"{1:020}.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json", "", "parquet"])
def test_checkpoints_of_delta_name_no_other_files(name: str, tmp_path: Path, outside: Path, server: str) -> None:
    name = name or f"{1:020}.checkpoint.parquet"
    name = name if "." in name else f"{1:020}.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.{name}"
    for i, named in enumerate([f"file://{outside}", str(outside), "../../../outside/others.parquet", f"{server}/x"]):
        folder = write_delta(tmp_path / f"{i}")
        write_sidecar(folder, named, outside.stat().st_size, name)
        refuse_everywhere(folder, "checkpoints in parts that name other files")


def test_classic_checkpoints_of_delta_are_read(tmp_path: Path) -> None:
    folder = write_delta(tmp_path / "people")
    deltalake.write_deltalake(str(folder), PEOPLE, mode="append")
    deltalake.DeltaTable(str(folder)).create_checkpoint()
    (folder / "_delta_log" / f"{0:020}.json").unlink()
    with open_source(folder, BOTH) as backend:
        assert backend.rows() == 4


def test_names_of_partitions_with_odd_characters_are_read(tmp_path: Path) -> None:
    values = [
        "a b",
        "é",
        "50%",
        "a/b",
        "x=1",
        "a:b",
        "#1",
        "a+b",
        "%2e%2e",
        "..",
        "it's",
        "q?x",
        "[z]",
        "*",
        None,
        "a\\b",
    ]
    frame = pa.table({"n": list(range(len(values))), "c": values})
    deltalake.write_deltalake(str(tmp_path / "odd"), frame, partition_by=["c"])
    read = reader_process.run_reader(find_files(tmp_path / "odd"))
    assert sorted(read.to_pylist(), key=lambda record: record["n"]) == frame.to_pylist()


@pytest.mark.slow
def test_links_in_a_delta_log_lead_nowhere_else(tmp_path: Path) -> None:
    for i, name in enumerate([f"{0:020}.json", "_last_checkpoint", "_sidecars"]):
        folder = write_delta(tmp_path / f"{i}")
        path = folder / "_delta_log" / name
        path.unlink(missing_ok=True)
        (tmp_path / "elsewhere").write_text("{}")
        path.symlink_to(tmp_path / "elsewhere")
        refuse_everywhere(folder, "is a link that leads out of the folder")
    moved = write_delta(tmp_path / "moved")
    (moved / "_delta_log").rename(tmp_path / "log")
    (moved / "_delta_log").symlink_to(tmp_path / "log")
    refuse_everywhere(moved, "is a link that leads out of the folder")


def test_a_pipe_in_a_delta_log_is_not_waited_for(tmp_path: Path) -> None:
    folder = write_delta(tmp_path / "people")
    os.mkfifo(folder / "_delta_log" / f"{1:020}.checkpoint.parquet")
    with pytest.raises(SourceError, match=r"checkpoint\.parquet' in the folder 'people' is no file"):
        find_files(folder)


# Arrow.


def write_arrow(path: Path, table: pa.Table, *, stream: bool = False, compression: str | None = None) -> Path:
    options = ipc.IpcWriteOptions(compression=compression)
    with (ipc.new_stream if stream else ipc.new_file)(path, table.schema, options=options) as writer:
        writer.write_table(table)
    return path


@pytest.mark.parametrize(
    "name", [b"arrow.py_extension_type", b"arrow.json", b"pandas.period", b"geoarrow.wkb", b"\xff"]
)
@pytest.mark.parametrize("stream", [False, True])
def test_types_of_an_arrow_file_bring_no_code(name: bytes, stream: bool, tmp_path: Path) -> None:
    named = {b"ARROW:extension:name": name, b"ARROW:extension:metadata": pickle.dumps(Spy.__new__(Spy))}
    if name == b"arrow.json":
        named[b"ARROW:extension:metadata"] = b""
    fields = [pa.field("c", pa.string(), metadata=named), pa.field("n", pa.int64(), metadata=named)]
    if name in (b"arrow.json", b"pandas.period"):
        fields[1] = pa.field("n", pa.int64())
    path = write_arrow(tmp_path / "a.arrow", PEOPLE.select(["c", "n"]).cast(pa.schema(fields)), stream=stream)
    CALLED.clear()
    describe_source(path)
    with open_source(path, DATA) as backend:
        assert backend.rows() == 2
    assert CALLED == []


@pytest.mark.slow
def test_arrow_compression_is_no_bomb(tmp_path: Path, little_memory: None) -> None:
    zeros = pa.Table.from_arrays([pa.array(memoryview(bytes(2**29)).cast("q"))], ["n"])
    path = write_arrow(tmp_path / "zeros.arrow", zeros, compression="zstd")
    assert path.stat().st_size < 2**17
    refuse_everywhere(path, "needs more than 192 MiB of memory")


# Excel.


def write_sheet(path: Path, sheet: str, **parts: str) -> Path:
    """A workbook with a sheet of our own words."""
    book = openpyxl.Workbook()
    book.active.append(["n"])
    book.save(path)
    with zipfile.ZipFile(path) as whole_book:
        content = {name: whole_book.read(name) for name in whole_book.namelist()}
    content["xl/worksheets/sheet1.xml"] = sheet.encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as changed:
        for name, text in {**content, **{name: text.encode() for name, text in parts.items()}}.items():
            changed.writestr(name, text)
    return path


SHEET = (
    '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{}</sheetData></worksheet>'
)
ROWS = SHEET.format(
    '<row r="1"><c r="A1" t="inlineStr"><is><t>n</t></is></c></row><row r="2"><c r="A2"{}</c></row>'
    '<row r="3"><c r="A3"><v>7</v></c></row>'
)


@pytest.mark.slow
@pytest.mark.parametrize("cell", ["XFD1048576", "A1048576", "XFD1", "ZZZZZZ99999999999", "A4294967295"])
def test_a_cell_far_away_harms_nobody(cell: str, tmp_path: Path) -> None:
    far = f'<row><c r="A1" t="inlineStr"><is><t>n</t></is></c></row><row><c r="{cell}"><v>1</v></c></row>'
    path = write_sheet(tmp_path / "far.xlsx", SHEET.format(far))
    assert path.stat().st_size < 10_000
    if cell in ("A1048576", "XFD1"):
        with open_source(path, DATA) as backend:
            assert backend.rows() == (2**20 - 1 if cell == "A1048576" else 0)
    else:
        refuse_everywhere(path, "cannot be read as an Excel file")


def test_a_workbook_with_a_cell_far_away_by_its_own_writer(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active["A1"], book.active["XFD1048576"] = "n", 1
    book.save(tmp_path / "far.xlsx")
    refuse_everywhere(tmp_path / "far.xlsx", "cannot be read as an Excel file.+MiB of memory")


@pytest.mark.slow
def test_entities_and_links_of_a_workbook_lead_nowhere(tmp_path: Path, server: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("4242")
    entities = {
        "file": f'<!DOCTYPE worksheet [<!ENTITY x SYSTEM "file://{secret}">]>',
        "server": f'<!DOCTYPE worksheet [<!ENTITY x SYSTEM "{server}/x">]>',
        "dtd": f'<!DOCTYPE worksheet SYSTEM "{server}/x.dtd">',
        "laughs": "<!DOCTYPE worksheet [<!ENTITY a '4242'>"
        + "".join(
            f"<!ENTITY {name} '{f'&{before};' * 20}'>" for before, name in zip("abcdefgh", "bcdefghx", strict=True)
        )
        + "]>",
    }
    cells = dict.fromkeys(entities, ' t="str"><v>&x;</v>')
    cells["link"] = f'><f>[1]Sheet1!A1+WEBSERVICE("{server}/x")</f><v>5</v>'
    kinds = "http://schemas.openxmlformats.org"
    link = f"""<Relationships xmlns="{kinds}/package/2006/relationships"><Relationship Id="rId1" TargetMode="External"
        Type="{kinds}/officeDocument/2006/relationships/externalLinkPath" Target="{server}/b.xlsx"/></Relationships>"""
    for name, cell in cells.items():
        parts = {"xl/externalLinks/_rels/externalLink1.xml.rels": link} if name == "link" else {}
        path = write_sheet(tmp_path / f"{name}.xlsx", entities.get(name, "") + ROWS.format(cell), **parts)
        try:
            read = reader_process.run_reader(find_files(path)).column(0).to_pylist()
        except SourceError:
            continue
        assert read[0] == "n"
        assert "4242" not in str(read)


@pytest.mark.slow
def test_a_workbook_is_no_zip_bomb(tmp_path: Path, little_memory: None) -> None:
    blanks = ' t="str"><v>' + "0" * 2**28 + "</v>"
    path = write_sheet(tmp_path / "bomb.xlsx", ROWS.format(blanks))
    assert path.stat().st_size < 2**19
    refuse_everywhere(path, "cannot be read as an Excel file")


# Stata, SPSS and SAS.


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["sav", "zsav", "dta", "xpt"])
def test_lengths_in_files_of_statistics_programs_are_no_bombs(ending: str, tmp_path: Path, little_memory: None) -> None:
    path = tmp_path / f"a.{ending}"
    frame = pd.DataFrame({"n": [1.0, 2.0], "c": ["a", "b" * 200]})
    write = {"sav": pyreadstat.write_sav, "dta": pyreadstat.write_dta, "xpt": pyreadstat.write_xport}
    options = {"compress": True} if ending == "zsav" else {}
    write[ending.removeprefix("z")](frame, path, **options)
    content = path.read_bytes()
    counts = {"sav": (72, 76, 80), "zsav": (72, 76, 80), "dta": (60, 70, 80), "xpt": (480, 640, 700)}[ending]
    for place in (*counts, *range(200, min(len(content), 800), 100)):  # of variables, of records, of what follows
        path.write_bytes(content[:place] + b"\xff\xff\xff\x7f" + content[place + 4 :])
        try:
            reader_process.run_reader(find_files(path), ["n", "c"])
        except SourceError:
            continue


@pytest.mark.slow
def test_a_small_compressed_file_of_spss_is_no_bomb(tmp_path: Path, little_memory: None) -> None:
    path = tmp_path / "a.zsav"
    pyreadstat.write_sav(pd.DataFrame({f"x{i}": [0.0] * 2**19 for i in range(30)}), path, compress=True)
    assert path.stat().st_size < 2**17
    with pytest.raises(SourceError, match="needs more than 192 MiB of memory"):
        open_source(path, dataset(whole("x1"), whole("x2"), *(whole(f"x{i}") for i in range(3, 30))))
