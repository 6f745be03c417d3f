"""The outbox: files that tasks stage for sinks, the manifests that name those of each epoch, and how far all is published.

`EpochProtocol` fills and empties it. An epoch can be published twice, because names are fixed by sink, epoch and place.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from headwater.connectors.contract import Sink, Staged
from headwater.data.batch import Batch
from headwater.data.sound import fault_in
from headwater.epoch.manifest import Manifest, Published
from headwater.errors import PublishError
from headwater.job.layout import OutboxLayout
from headwater.plan.plan import JobPlan
from headwater.stored_paths import below


def stage(plan: JobPlan, outbox: Path, epoch: int, place: str, batches: dict[str, list[Batch]]) -> list[Staged]:
    """Write a task's rows for sinks, in the task. The attempt's own file names keep attempts apart.

    Here, before the commit, rows fail that an output cannot be given; what is staged can be published.
    """
    attempt = uuid.uuid4().hex[:12]
    staged = []
    sinks = plan.sinks_by_uid()
    for uid, parts in batches.items():
        sink = sinks[uid]
        table = pa.concat_tables([batch.table for batch in parts])
        folder = sink.staging_folder(outbox)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{epoch:010d}-{uid}-{place}-{attempt}.{sink.extension}"
        name = f"{uid}-{epoch:010d}-{place}.{sink.extension}"
        try:
            if (fault := fault_in(table)) is not None:
                raise ValueError(str(fault))
            for file, called, rows in sink.stage_all(table, path, name):
                staged.append(Staged(uid, str(file), called, rows, file.stat().st_size))
        except (OSError, ValueError, OverflowError) as error:  # Arrow's errors are ValueErrors, of rows as ours
            for file in folder.glob(f"{path.stem}*"):
                file.unlink()
            if isinstance(error, OSError):
                raise PublishError.failed(uid, epoch, f"staging in {folder} failed: {error}") from None
            raise PublishError.not_staged(uid, epoch, str(error)) from None
    return staged


class Outbox:
    """The driver's side: what is staged, what of it belongs to which epoch, and how far epochs are published."""

    def __init__(self, folder: Path, sinks: Mapping[str, Sink] | None = None, first_epoch: int = 0) -> None:
        """`first_epoch` is the job's first one; those before it are another job's, and published."""
        self._staging = {uid: sink.staging_folder(folder) for uid, sink in (sinks or {}).items()}
        self._layout = OutboxLayout(folder)
        self.progress = Published.read_if_there(self._layout.published) or Published(first_epoch - 1)

    @property
    def published(self) -> int:
        """The newest epoch that every sink has."""
        return self.progress.epoch

    def write_manifest(self, manifest: Manifest) -> None:
        """Name the files of an epoch, atomically; replaces the manifest of an attempt that was not committed.

        An epoch that sinks have, and that was computed again because the job was taken back, leaves nothing to publish.
        """
        if manifest.epoch <= self.published:
            self._clean(manifest.epoch)
        else:
            manifest.write(self._layout.manifest(manifest.epoch))

    def pending(self) -> list[int]:
        """The epochs with a manifest, in order."""
        return self._layout.epochs()

    def discard(self, epoch: int) -> None:
        """Drop the manifest of an epoch that was never committed; the epoch will be computed again."""
        self._layout.manifest(epoch).unlink(missing_ok=True)

    def manifest(self, epoch: int) -> Manifest:
        """What an epoch has staged. Wherever a manifest says that files are, they are where their sink stages them."""
        where = self._layout.manifest(epoch)
        manifest = Manifest.read(where)
        return replace(manifest, files=tuple(self._staged(file, epoch, where) for file in manifest.files))

    def _staged(self, file: Staged, epoch: int, where: Path) -> Staged:
        if file.sink not in self._staging:
            raise PublishError.sink_is_gone(file.sink, epoch)
        return replace(file, path=str(below(self._staging[file.sink], Path(file.path).name, where)))

    def close(self, epoch: int) -> None:
        """Record an epoch that is committed and that every sink has, and clean up."""
        manifest = self.manifest(epoch)
        progress = Published(epoch, manifest.end, manifest.positions)
        progress.write(self._layout.published)
        self.progress = progress
        self._clean(epoch)

    def _clean(self, epoch: int) -> None:
        self._layout.manifest(epoch).unlink(missing_ok=True)
        for folder in sorted(set(self._staging.values())):
            for path in folder.glob(f"{epoch:010d}-*"):
                path.unlink(missing_ok=True)

    def remove_orphans(self) -> None:
        """Remove what earlier runs left behind: their plans, and staged files that no manifest names."""
        for plan in self._layout.plans():
            plan.unlink(missing_ok=True)
        kept = {file.path for epoch in self.pending() for file in self.manifest(epoch).files}
        for folder in sorted(set(self._staging.values())):
            for path in folder.glob("[0-9]" * 10 + "-*"):
                if str(path) not in kept:
                    path.unlink(missing_ok=True)
