"""Imports go down only. The table says what each part of the package may know; a new part needs a row of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "headwater"
ROOT = "<root>"

LEAVES = frozenset(
    {
        "aggregates",
        "budgets",
        "data",
        "declared",
        "descriptors",
        "durable",
        "durations",
        "errors",
        "expiry",
        "functions",
        "late_rows",
        "lookups",
        "measures",
        "moments",
        "restart",
    }
    | {"retry", "scratch", "shapes", "sizes", "stored_paths", "uncaught", "versioned", "watermarks", "windows", "words"}
)
"""What users write, and what everybody speaks of: they know only each other."""

TASK = LEAVES | {"clock", "connectors.contract", "graph", "operators", "plan", "state"}

ALLOWED: dict[str, frozenset[str]] = {
    **dict.fromkeys(LEAVES, LEAVES),
    "eventlog": frozenset({"data.rows", "data.schema", "data.sound", "durable", "errors"}),
    "state": LEAVES,
    "clock": LEAVES | {"state.slices", "state.spread", "state.table", "state.timers"},
    "connectors": LEAVES | {"eventlog", "spark.checkpoint_files"},
    "graph": LEAVES | {"connectors.contract"},
    "plan": LEAVES | {"connectors.contract", "graph"},
    "operators": LEAVES | {"clock", "graph.edges", "graph.nodes", "graph.windowed", "state"},
    "task": TASK,
    # The offset is in savepoints as in the log of an engine, and the outbox has its place in the job folder.
    "epoch.offset": LEAVES,
    "job.layout": LEAVES,
    "savepoints": TASK | {"epoch.offset", "job.layout", "task"},
    "epoch": TASK | {"job.layout", "savepoints", "task"},
    # What Spark keeps, read without Spark: nobody else knows its form, and checkpoints are listed by it.
    "job.checkpoints.stored": LEAVES | {"epoch.offset"},
    "spark.checkpoint_files": LEAVES | {"epoch.offset", "job.checkpoints.stored"},
    "job": TASK | {"epoch", "savepoints", "spark.checkpoint_files", "task"},
    "local": TASK | {"epoch", "job", "savepoints", "task"},
    "spark": LEAVES
    | {"connectors.batches", "connectors.contract", "connectors.dataframes", "plan", "state.changelog"}
    | {"operators.user_code"}
    | {"epoch", "job", "savepoints", "task"},
    # The environment puts a job together and starts it, so it knows the engines by name; the other handles only build.
    "sql": LEAVES | {"connectors", "graph"},
    "streams": LEAVES
    | {"connectors", "graph", "plan", "sql", "state.keys"}
    | {"epoch.clock", "epoch.steps", "job.checkpoints", "job.engine", "job.growth"}
    | {"job.log_lines", "job.progress", "job.signals", "job.state_view", "job.watching", "spark.looking"}
    | {"local.engine", "savepoints", "spark.engine"},
    # Savepoints as users read, write and check them: what the rest of the room does for jobs, for programs.
    "savepoints.tables": TASK | {"epoch.offset", "job", "savepoints", "streams.environment", "task"},
    # Metrics are a look at the status of a job, and at the time its epochs take.
    "metrics": LEAVES | {"epoch.steps", "job.status", "job.watching"},
    "control": LEAVES | {"epoch", "graph.nodes", "job", "savepoints"},
    "serving": LEAVES,
    "push": LEAVES | {"connectors.formats", "eventlog", "serving"},
    "web": LEAVES | {"control", "epoch.protocol", "job", "serving"},
    "testing": LEAVES
    | {"clock", "connectors", "eventlog", "graph", "operators", "plan", "state", "streams"}
    | {"epoch", "job", "local", "savepoints", "task"},
    "demo": frozenset({ROOT}),  # it does what a user can do
    # So does the command line; and it names files, options and facts as their owners do.
    "cli": LEAVES
    | {ROOT, "control", "demo", "eventlog", "job", "push", "savepoints.files", "spark.java", "streams.built"}
    | {"serving.refused", "streams.overrides", "streams.table", "web"},
    ROOT: LEAVES
    | {
        "connectors",
        "control",
        "eventlog",
        "epoch.steps",
        "graph.guarantees",
        "job.checkpoints",
        "job.engine",
        "job.growth",
        "job.state_view",
    }
    | {
        "job.state_view",
        "job.status",
        "metrics",
        "savepoints.errors",
        "savepoints.tables",
        "sql.errors",
        "streams",
        "testing",
    },
}

THIRD_PARTY: dict[str, frozenset[str]] = {
    "pyspark": frozenset({"spark"}),
    "py4j": frozenset(),
    "confluent_kafka": frozenset({"connectors"}),
    "fastavro": frozenset({"connectors"}),
    "opentelemetry": frozenset({"metrics"}),
    "prometheus_client": frozenset({"metrics"}),
    "psycopg": frozenset({"connectors"}),
    "pandas": frozenset(),  # pyspark needs it, we do not
    "duckdb": frozenset({"data"}),
    "sqlglot": frozenset({"data", "sql"}),
    "rich": frozenset({"cli", "demo"}),
    "rocksdict": frozenset({"state"}),
    "starlette": frozenset({"push", "serving", "web"}),
    "typer": frozenset({"cli"}),
    "uvicorn": frozenset({"serving"}),
}
"""Where a package may be imported that is not free to import everywhere."""

PRIVATE_TO_SPARK = {"_gateway", "_jc", "_jdf", "_jreader", "_jsc", "_jsparkSession", "_jvm", "_jwrite"}
"""The JVM behind pyspark. Without it the same code can run through Spark Connect."""


@dataclass(frozen=True)
class Import:
    """One import statement: who, where, what, and whether it runs when the module is imported."""

    part: str
    place: str
    target: str
    at_top: bool


def modules() -> list[Path]:
    return sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")])


def part_of(path: Path) -> str:
    """The row that a file goes by: that of the innermost folder which has one."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    rows = [name for end in range(len(parts), 0, -1) if (name := ".".join(parts[:end])) in ALLOWED]
    return rows[0] if rows else ROOT if parts[0] == "__init__" else parts[0]


def imports(path: Path) -> Iterator[Import]:
    tree = ast.parse(path.read_text())
    inside = {
        id(n) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef) for n in ast.walk(f)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            from_room = (PACKAGE.parent / str(node.module).replace(".", "/")).is_dir()
            targets = [f"{node.module}.{alias.name}" for alias in node.names] if from_room else [str(node.module)]
        else:
            continue
        place = f"{path.relative_to(PACKAGE)}:{node.lineno}"
        yield from (Import(part_of(path), place, target, id(node) not in inside) for target in targets)


def own(found: Import) -> str | None:
    """The part of Headwater that is imported, if it is one: `state.table`, `errors`, or the root."""
    head, _, rest = found.target.partition(".")
    return (rest or ROOT) if head == "headwater" else None


def allows(rule: frozenset[str], target: str) -> bool:
    return any(target == good or target.startswith(f"{good}.") for good in rule)


def _row(target: str) -> str:
    """The row that an import goes by."""
    parts = target.split(".")
    rows = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((row for row in rows if row in ALLOWED), target)


ALL = [found for path in modules() for found in imports(path)]


def test_every_part_has_a_row_and_every_row_a_part() -> None:
    assert {part_of(path) for path in modules()} == set(ALLOWED)


@pytest.mark.parametrize("part", sorted(ALLOWED))
def test_part_imports_only_what_it_may_know(part: str) -> None:
    rule = ALLOWED[part] | ({part} if part != ROOT else set())
    wrong = [
        f"{found.place} imports {target}"
        for found in ALL
        if found.part == part and (target := own(found)) is not None and not allows(rule, target)
    ]
    assert wrong == []


def test_the_table_itself_has_no_cycle() -> None:
    rows = {part: {_row(good) for good in rule} - {part} for part, rule in ALLOWED.items()}
    leaf_free = {part: goods - LEAVES for part, goods in rows.items() if part not in LEAVES}
    TopologicalSorter(leaf_free).prepare()


def test_leaves_do_not_import_each_other_in_circles() -> None:
    known = {leaf: {own(found) or "" for found in ALL if found.part == leaf and found.at_top} for leaf in LEAVES}
    TopologicalSorter({leaf: goods & LEAVES for leaf, goods in known.items()}).prepare()


@pytest.mark.parametrize("library", sorted(THIRD_PARTY))
def test_library_is_imported_only_where_it_belongs(library: str) -> None:
    wrong = [
        found.place
        for found in ALL
        if found.target.partition(".")[0] == library and found.part not in THIRD_PARTY[library]
    ]
    assert wrong == []


def test_the_spark_engine_is_imported_only_when_a_job_asks_for_it() -> None:
    known = [found for found in ALL if found.target.startswith("headwater.spark") and found.part != "spark"]
    assert known
    assert [found.place for found in known if found.at_top] == []


def test_nothing_reaches_for_the_jvm() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{node.lineno} {name}"
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text()))
        if (name := _name(node)) in PRIVATE_TO_SPARK
    ]
    assert wrong == []


def _name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
