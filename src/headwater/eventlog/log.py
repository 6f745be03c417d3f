"""The event log: a folder of topics."""

from __future__ import annotations

import re
import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.data.schema import Schema, SchemaLike
from headwater.durable import sync_folder
from headwater.eventlog.descriptor import FILE_NAME, TopicDescriptor
from headwater.eventlog.errors import LogArgument, LogUnreadable, LogWriteFailed, TopicExists, TopicMissing
from headwater.eventlog.files import READ_ONLY, locked
from headwater.eventlog.retention import Retention
from headwater.eventlog.topic import Topic, create_topic_files

if TYPE_CHECKING:
    import os

    import pyarrow as pa

SEGMENT_BYTES = 64 << 20
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
_LOCK_NAME = ".lock"  # begins with a dot: never a topic


class EventLog:
    """A folder of topics, made when its first topic is.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> orders = EventLog(folder.name).create_topic("orders", "user long")
    >>> orders.append([{"user": 7}, {"user": 8}, {"user": 9}])
    (0, 3)
    >>> [batch["user"].to_pylist() for batch in orders.read(0, start=1)]
    [[8, 9]]
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()

    def __repr__(self) -> str:
        return f"EventLog({str(self.path)!r})"

    def create_topic(
        self,
        name: str,
        schema: SchemaLike,
        partitions: int = 1,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        retention: Retention | None = None,
        exist_ok: bool = False,
    ) -> Topic:
        """Create a topic, or with `exist_ok` open one that has this schema and number of partitions.

        Of an existing topic, `segment_bytes` and `retention` stay as they were stored.
        """
        folder = self.path / _checked_name(name)
        settings = TopicDescriptor(_arrow(schema), partitions, segment_bytes, retention or Retention())
        try:
            # One that is there is complete, and may be there for reading only.
            is_new = not (folder / FILE_NAME).exists() and self._made(folder, settings)
        except OSError as error:
            if error.errno in READ_ONLY:
                raise LogWriteFailed.read_only(name, None, self.path, error) from error
            raise
        if not is_new and not exist_ok:
            raise TopicExists.of(name, self.path)
        return _same(self.topic(name), settings)

    def topic(self, name: str) -> Topic:
        """Open a topic; TopicMissing lists what there is."""
        try:
            return Topic(self.path / _checked_name(name))
        except FileNotFoundError:
            raise TopicMissing.of(name, self.path, self.topics()) from None
        except OSError as error:
            raise LogUnreadable.of(name, error) from error

    def topics(self) -> list[str]:
        """Return the names of all topics, sorted."""
        if not self.path.is_dir():
            return []
        return sorted(
            entry.parent.name for entry in self.path.glob(f"*/{FILE_NAME}") if _NAME.fullmatch(entry.parent.name)
        )

    def delete_topic(self, name: str) -> None:
        """Remove a topic with all its rows. Who reads or writes it then fails."""
        folder = self.topic(name).path
        gone = folder.with_name(f".deleted-{uuid.uuid4().hex}")
        with locked(self.path / _LOCK_NAME):
            folder.rename(gone)  # at once, for everybody
            sync_folder(self.path)
        shutil.rmtree(gone)

    def _made(self, folder: Path, settings: TopicDescriptor) -> bool:
        """Make a topic, unless somebody else has just done it."""
        self.path.mkdir(parents=True, exist_ok=True)
        with locked(self.path / _LOCK_NAME):
            if (folder / FILE_NAME).exists():
                return False
            create_topic_files(folder, settings)
            sync_folder(self.path)
        return True


def _arrow(schema: SchemaLike) -> pa.Schema:
    """The Arrow schema itself, or the one that DDL text stands for."""
    return Schema.of(schema).arrow if isinstance(schema, str | Schema) else schema


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        rule = "1 to 200 letters, digits, '.', '_' or '-', not beginning with '.'"
        raise LogArgument.of("a topic's name", rule, name)
    return name


def _same(topic: Topic, asked: TopicDescriptor) -> Topic:
    if not topic.schema.equals(asked.schema):
        raise TopicExists.different(topic.name, "schema", topic.schema, asked.schema)
    if topic.partitions != asked.partitions:
        raise TopicExists.different(topic.name, "number of partitions", topic.partitions, asked.partitions)
    return topic
