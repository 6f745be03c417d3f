"""All sources of a job, and its clock, as one Python data source: one offset, one read of each split per epoch.

Spark makes the source in a process of its own and hands it on from there, so this module imports little.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader

from headwater.spark.shipped import ShippedJob
from headwater.spark.step import ROW_SCHEMA

if TYPE_CHECKING:
    from headwater.connectors.contract import Positions
    from headwater.epoch.clock import Clock


@dataclass(frozen=True)
class ReadPlan:
    """What a reader needs to know."""

    job: ShippedJob
    max_rows: int
    targets: dict[str, Positions] | None
    clock: Clock
    unaligned_ms: int | None
    goes_on: bool
    """Whether the input does not end at the targets, but the run alone."""


def source_class(name: str, plan: ReadPlan) -> type[DataSource]:
    """The data source of one run; the class carries the plan, because Spark makes its instances itself."""

    class JobSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> str:
            return ROW_SCHEMA

        def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
            from headwater.spark.reader import JobReader

            return JobReader(plan)

    return JobSource
