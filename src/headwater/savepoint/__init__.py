"""Savepoints as tables: read them, write them from tables, and see beforehand whether a program can go on from one."""

from headwater.runtime.saved.fitting import Fate, Fit, Upgrade
from headwater.savepoint.checking import check
from headwater.savepoint.reading import SavedJob, SavedState, read
from headwater.savepoint.writing import write

__all__ = ["Fate", "Fit", "SavedJob", "SavedState", "Upgrade", "check", "read", "write"]
