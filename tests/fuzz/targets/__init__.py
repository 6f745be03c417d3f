"""Everything that is fuzzed, by name."""

from __future__ import annotations

from tests.fuzz.target import Target
from tests.fuzz.targets.job_folders import JobFolders
from tests.fuzz.targets.payloads import Payloads, Reports
from tests.fuzz.targets.records import Records
from tests.fuzz.targets.savepoints import Savepoints

TARGETS: dict[str, type[Target]] = {
    target.name: target for target in (JobFolders, Payloads, Records, Reports, Savepoints)
}
