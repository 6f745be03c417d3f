"""Everything that is fuzzed, by name."""

from __future__ import annotations

from tests.fuzz.target import Target
from tests.fuzz.targets.checkpoints import SparkCheckpoints
from tests.fuzz.targets.connector_notes import ConnectorNotes
from tests.fuzz.targets.event_logs import EventLogs
from tests.fuzz.targets.expressions import Expressions
from tests.fuzz.targets.input_files import CsvFiles, JsonFiles, ParquetFiles
from tests.fuzz.targets.job_folders import JobFolders
from tests.fuzz.targets.ledgers import Ledgers
from tests.fuzz.targets.payloads import Payloads, Reports
from tests.fuzz.targets.pushed import PushedBodies
from tests.fuzz.targets.records import Pieces, Records
from tests.fuzz.targets.savepoints import Savepoints
from tests.fuzz.targets.values import AvroValues, CsvValues, JsonValues

TARGETS: dict[str, type[Target]] = {
    target.name: target
    for target in (
        AvroValues,
        ConnectorNotes,
        CsvFiles,
        CsvValues,
        EventLogs,
        Expressions,
        JobFolders,
        JsonFiles,
        JsonValues,
        Ledgers,
        ParquetFiles,
        Payloads,
        Pieces,
        PushedBodies,
        Records,
        Reports,
        Savepoints,
        SparkCheckpoints,
    )
}
