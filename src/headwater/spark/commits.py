"""Which epochs of a job Spark has committed; it counts its batches from 0, whatever the job's first epoch is."""

from __future__ import annotations

from headwater.job.folder import JobFolder
from headwater.spark.checkpoint_files import CheckpointFiles


class Commits:
    """Spark's commit log, by epochs."""

    def __init__(self, folder: JobFolder) -> None:
        self._folder, self._files = folder, CheckpointFiles(folder.layout.checkpoint)

    def batch(self, epoch: int) -> int:
        """What Spark calls an epoch."""
        return epoch - self._folder.first_epoch

    def __contains__(self, epoch: int) -> bool:
        return self._files.is_committed(self.batch(epoch))

    def have_begun(self) -> bool:
        """Whether there is a log."""
        return self._files.has_commits()

    def retained(self) -> list[int]:
        """The epochs that are still there, in order."""
        return [batch + self._folder.first_epoch for batch in self._files.committed()]
