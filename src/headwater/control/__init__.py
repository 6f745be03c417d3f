"""Jobs as they are seen and asked from other processes: which there are, where they stand, stop, savepoint, state.

For jobs on Spark with a `job_dir`; everything goes through that folder. To look at one locks nothing and changes nothing.
"""

from headwater.control.asking import request_savepoint, request_state, request_stop
from headwater.control.view import JobView, job, jobs

__all__ = ["JobView", "job", "jobs", "request_savepoint", "request_state", "request_stop"]
