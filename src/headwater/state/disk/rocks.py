"""RocksDB as the disk backend uses it: bytes in, bytes out, in a folder that is only a cache.

It keeps no log of its own and syncs nothing: after a crash the changelog is what counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from headwater.errors import StateError
from headwater.scratch import Scratch
from headwater.state.disk.bound import Bound

if TYPE_CHECKING:
    from rocksdict import Options, Rdict, WriteBatch

_FILTER_BITS = 10
"""Bits a key of the filter that tells without a read that a file lacks it; one in a hundred is told wrongly."""
_FEW = 100
"""Up to this many rows are removed one by one: marks for ranges slow down reads for as long as they are there."""


class RocksStore:
    """The database of one step on one subtask. It is opened when it is first needed."""

    def __init__(self, step: str, parent: Path | None, bound: Bound) -> None:
        self._step, self._parent, self._bound = step, parent, bound
        self._scratch: Scratch | None = None

    @cached_property
    def _database(self) -> Rdict:
        from rocksdict import Rdict, WriteOptions

        try:
            self._scratch = Scratch("state", self._parent)
            database = Rdict(str(self._scratch.path / "rocksdb"), _options(self._bound))
        except Exception as error:
            self._fail(error)
        unlogged = WriteOptions()
        setattr(unlogged, "disable_wal", True)  # noqa: B010  its stub takes it for a method
        database.set_write_options(unlogged)
        return database

    def get(self, key: bytes) -> bytes | None:
        try:
            return self._database.get(key)
        except Exception as error:
            self._fail(error)

    def get_all(self, keys: list[bytes]) -> list[bytes | None]:
        """The values of several keys, in their order."""
        try:
            return self._database.get([*keys])  # type: ignore[return-value]
        except Exception as error:
            self._fail(error)

    def batch(self) -> WriteBatch:
        """What takes puts and deletes for `write`."""
        from rocksdict import WriteBatch

        return WriteBatch(raw_mode=True)

    def write(self, batch: WriteBatch) -> None:
        """Let puts and deletes take effect."""
        try:
            self._database.write(batch)
        except Exception as error:
            self._fail(error)

    def scan(self, prefix: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """The rows whose keys begin with the prefix, without it, in order and as they are now; from `start` on."""
        from rocksdict import ReadOptions

        bounds = ReadOptions()
        bounds.set_iterate_upper_bound(_behind(prefix))
        skip = len(prefix)
        try:
            for key, value in self._database.items(from_key=prefix + start, read_opt=bounds):
                yield key[skip:], value  # type: ignore[index, misc]
        except Exception as error:
            self._fail(error)

    def remove(self, prefix: bytes, count: int | None = None) -> None:
        """Remove the rows whose keys begin with the prefix; `count` says how many there are, if that is known."""
        batch = self.batch()
        if count is not None and count <= _FEW:
            for key, _ in self.scan(prefix):
                batch.delete(prefix + key)
        else:
            batch.delete_range(prefix, _behind(prefix))
        self.write(batch)

    def close(self) -> None:
        """Close the database and remove its folder."""
        if self._scratch is not None:
            if (database := self.__dict__.pop("_database", None)) is not None:
                with suppress(Exception):  # it writes what is not in files yet, maybe to a folder that is gone or full
                    database.close()
            self._scratch.close()
            self._scratch = None

    def _fail(self, error: Exception) -> NoReturn:
        if isinstance(error, StateError):  # it failed while it was opened
            raise error
        where = self._scratch.path if self._scratch is not None else self._parent
        raise StateError.disk_failed(self._step, str(where), str(error)) from None


def _behind(prefix: bytes) -> bytes:
    """The first key behind all that begin with the prefix, whose last byte is never 255."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


def _options(bound: Bound) -> Options:
    from rocksdict import BlockBasedIndexType, BlockBasedOptions, DBCompressionType, Options

    blocks = BlockBasedOptions()
    blocks.set_block_cache(bound.cache)
    blocks.set_cache_index_and_filter_blocks(True)
    blocks.set_bloom_filter(bits_per_key=_FILTER_BITS, block_based=False)
    # Index and filter in pieces: whole, one of a large file is megabytes, and is read for a single key when the cache lacks it.
    blocks.set_index_type(BlockBasedIndexType.two_level_index_search())
    blocks.set_partition_filters(True)
    blocks.set_pin_top_level_index_and_filter(True)
    options = Options(raw_mode=True)
    options.set_block_based_table_factory(blocks)
    options.set_write_buffer_manager(bound.buffers)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_keep_log_file_num(1)
    options.set_stats_dump_period_sec(0)
    return options
