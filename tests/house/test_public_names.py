"""The public names: exactly these, light to import, and documented."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

import headwater as hw

PUBLIC = [
    "DEAD_LETTERS",
    "Aggregate",
    "AggregateFunction",
    "AggregatingState",
    "BroadcastContext",
    "BroadcastFunction",
    "BroadcastStream",
    "Budget",
    "ChangelogError",
    "Checkpoint",
    "Checkpoints",
    "CoProcessFunction",
    "Context",
    "DurationError",
    "Element",
    "Environment",
    "EpochStep",
    "EventLog",
    "EventTimeWarning",
    "Evictor",
    "GraphError",
    "Guarantee",
    "GuaranteeWarning",
    "HeadwaterError",
    "JavaMissing",
    "Job",
    "JobError",
    "JobStatus",
    "KeyedBroadcastFunction",
    "KeyedProcessFunction",
    "KeyedStream",
    "ListState",
    "LogError",
    "MapState",
    "OperatorListState",
    "OutputTag",
    "Pane",
    "PathGuarantee",
    "ProcessFunction",
    "ProcessWindowFunction",
    "PublishError",
    "ReducingState",
    "RestartReason",
    "Retention",
    "Retry",
    "RowError",
    "SavepointError",
    "Schema",
    "SchemaError",
    "SourceError",
    "SqlError",
    "StateBudgetExceeded",
    "StateError",
    "StateExplanation",
    "StateGrowthWarning",
    "StateView",
    "Step",
    "Stream",
    "Timer",
    "Trigger",
    "TriggerContext",
    "TriggerResult",
    "Ttl",
    "UnionListState",
    "UnsafePath",
    "UserCodeError",
    "ValueState",
    "WatermarkGenerator",
    "Watermarks",
    "Window",
    "WindowAssigner",
    "WindowContext",
    "WindowedStream",
    "approx_count_distinct",
    "approx_quantile",
    "avg",
    "both",
    "budget",
    "checkpoints",
    "collect_list",
    "collect_set",
    "connectors",
    "control",
    "count",
    "count_distinct",
    "cumulate",
    "early",
    "either",
    "evictors",
    "first",
    "first_value",
    "global_window",
    "last",
    "last_value",
    "max",
    "max_by",
    "metrics",
    "min",
    "min_by",
    "per_window",
    "processing_time",
    "repeat",
    "restart",
    "savepoint",
    "session",
    "sliding",
    "stddev",
    "sum",
    "testing",
    "then",
    "triggers",
    "ttl",
    "tumbling",
    "var",
]
"""A name added here is a promise; a name taken away breaks somebody's program. Say so in CHANGELOG.md."""


def test_the_public_names_are_exactly_these() -> None:
    assert hw.__all__ == sorted(PUBLIC)
    assert [name for name in PUBLIC if not hasattr(hw, name)] == []


def test_importing_headwater_does_not_import_pyspark() -> None:
    code = "import sys, headwater; [getattr(headwater, name) for name in headwater.__all__]; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_processes_that_only_carry_a_job_along_import_little_of_it() -> None:
    code = "import sys, headwater.spark.source; print(sum(name.startswith('headwater') for name in sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert int(found.stdout) < 40, "each query starts several such processes, and waits for them"


def test_the_process_that_plans_a_job_imports_neither_what_runs_tasks_nor_ends_of_other_jobs() -> None:
    code = "import sys, headwater.spark.reader; print(*(name for name in sys.modules if name.startswith('headwater.')))"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    rooms = {tuple(name.split(".")[1:3]) for name in found}
    assert {name for room, *names in rooms if room == "connectors" for name in names} == {"contract"}
    assert not rooms & {("operators", "registry"), ("savepoints", "origin"), ("task", "host"), ("task", "split")}


def test_an_end_keeps_its_name_from_the_module_that_it_is_in() -> None:
    code = """
import headwater.connectors.kafka.source, headwater.connectors.log, headwater.connectors.postgres
import headwater as hw
print(*(name for name in hw.connectors.__all__ if not callable(getattr(hw.connectors, name)) and name != "Positions"))
"""
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.split() == []


def test_every_public_class_and_function_has_a_docstring() -> None:
    assert [name for name, thing in _public(hw, "hw") if not (thing.__doc__ or "").strip()] == []


def test_every_public_method_has_a_docstring_or_inherits_one() -> None:
    without = {
        f"{name}.{method}"
        for name, cls in _public(hw, "hw")
        if isinstance(cls, type) and not issubclass(cls, Exception)
        for method, thing in vars(cls).items()
        if not method.startswith("_") and _is_code(thing) and not inspect.getdoc(getattr(cls, method))
    }
    assert not without


def _public(module: ModuleType, path: str) -> Iterator[tuple[str, object]]:
    """Every class and function behind the `__all__` of a module and of the modules in it."""
    for name in module.__all__:
        thing = getattr(module, name)
        if isinstance(thing, ModuleType):
            yield from _public(thing, f"{path}.{name}")
        elif inspect.isclass(thing) or inspect.isfunction(thing):
            yield f"{path}.{name}", thing


def _is_code(thing: object) -> bool:
    return inspect.isfunction(thing) or isinstance(thing, property | classmethod | staticmethod)
