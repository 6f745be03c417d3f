"""Which epochs of a job Spark has committed; it counts its batches from 0, whatever the job's first epoch is."""

from __future__ import annotations

from headwater.job.folder import JobFolder


class Commits:
    """Spark's commit log, by epochs."""

    def __init__(self, folder: JobFolder) -> None:
        self._folder = folder

    def batch(self, epoch: int) -> int:
        """What Spark calls an epoch."""
        return epoch - self._folder.first_epoch

    def __contains__(self, epoch: int) -> bool:
        return (self._folder.layout.checkpoint / "commits" / str(self.batch(epoch))).exists()

    def have_begun(self) -> bool:
        """Whether there is a log."""
        return (self._folder.layout.checkpoint / "commits").exists()

    def retained(self) -> list[int]:
        """The epochs that are still there, in order."""
        commits = self._folder.layout.checkpoint / "commits"
        names = [path.name for path in commits.iterdir()] if commits.is_dir() else []
        return sorted(int(name) + self._folder.first_epoch for name in names if name.isdigit())
