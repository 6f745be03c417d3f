"""The chain of a partition's segments: each begins where the one before it ends, and the newest one is there."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from headwater.eventlog.errors import LogCorrupt
from headwater.eventlog.files import OpenFile, index_path, segment_bases, segment_path
from headwater.eventlog.flushed import read_flushed
from headwater.eventlog.segment import Damage, last_known, scan

if TYPE_CHECKING:
    from pathlib import Path


class Chain:
    """The segments of one partition, as a reader or a writer finds them.

    That a segment begins where another ends is found by a walk, up to a millisecond each, and once. A reader who comes
    anew looks at the newest link; at the others as it reads across them. A writer looks at all.
    """

    def __init__(self, folder: Path, topic: str, partition: int) -> None:
        self._folder = folder
        self._topic = topic
        self._partition = partition
        self._linked: set[int] = set()
        """The segments that were found to follow the one before them."""

    def bases(self, *, all_links: bool) -> list[int]:
        """Return the base offsets of the segments, ascending; LogCorrupt if they are not a chain, as far as is looked.

        Without a lock: a listing made while others roll or remove segments may look like a broken chain, once.
        """
        before = ""
        while True:
            flushed = read_flushed(self._folder)  # before the listing: what it names must be there
            bases, strays = segment_bases(self._folder)
            if strays:
                raise LogCorrupt.stray(self._folder / strays[0], topic=self._topic, partition=self._partition)
            if not bases:
                raise self.corrupt(self._folder, Damage(0, 0, "the partition has no segment"))
            broken = self._missing(bases[-1], flushed.base if flushed else 0) or self._unlinked(
                bases if all_links else bases[-2:]
            )
            if broken is None:
                return bases
            if str(broken) == before:
                raise broken
            before = str(broken)

    def corrupt(self, path: Path, damage: Damage) -> LogCorrupt:
        """Say what is wrong in a file of this partition."""
        return LogCorrupt.frame(
            path,
            damage.position,
            damage.reason,
            topic=self._topic,
            partition=self._partition,
            offset=damage.offset,
        )

    def _missing(self, newest: int, flushed: int) -> LogCorrupt | None:
        if newest >= flushed:
            return None
        reason = "the segment's file is missing, and it was there when rows were flushed"
        return self.corrupt(segment_path(self._folder, flushed), Damage(0, flushed, reason))

    def _unlinked(self, bases: list[int]) -> LogCorrupt | None:
        for base, following in pairwise(bases):
            if following in self._linked:
                continue
            try:
                segment = OpenFile(segment_path(self._folder, base))
                found = scan(segment, last_known(segment, index_path(self._folder, base), base), verify_last=False)
            except (FileNotFoundError, Damage):
                continue  # removed meanwhile; or damaged, which is told when it is read
            if not found.torn and found.end.offset != following:
                return LogCorrupt.unlinked(
                    segment_path(self._folder, following),
                    segment.path,
                    topic=self._topic,
                    partition=self._partition,
                    offset=found.end.offset,
                )
            self._linked.add(following)
        return None
