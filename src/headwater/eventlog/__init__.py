"""The embedded event log: topics of Arrow rows in a folder, for several writers and readers on one machine.

A topic has partitions; a partition is a chain of append-only segment files; an append is visible whole or not at all.
Writers of one partition take turns under a file lock; readers take no lock. The folder must be on a local file system
(`flock`, `mmap`). Rows are durable against a crash of the process at once, against power loss after `Topic.flush()`.
"""

from headwater.eventlog.log import EventLog
from headwater.eventlog.retention import RemovedSegment, Retention
from headwater.eventlog.topic import Topic

__all__ = ["EventLog", "RemovedSegment", "Retention", "Topic"]
