"""The job folder: identity, lock, checkpoint and outbox of one job."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import uuid
from pathlib import Path
from typing import Any

from headwater.durable import write_atomically
from headwater.errors import JobError
from headwater.plan.levels import JobPlan
from headwater.savepoints.origin import Origin

CHECKPOINT, OUTBOX, SOURCES = "checkpoint", "outbox", "sources"
_FORMAT = 1


class JobFolder:
    """A folder that one process at a time runs a job in. `resumed` tells whether it held a job before."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.path.mkdir(parents=True, exist_ok=True)
        self.checkpoint = self.path / CHECKPOINT
        self.outbox = self.path / OUTBOX
        self.outbox.mkdir(exist_ok=True)
        self.sources = self.path / SOURCES
        self.restarts = self.path / "restarts.jsonl"
        self._lock = (self.path / "lock").open("a+")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.seek(0)
            owner = self._lock.read()
            self._lock.close()
            raise JobError.folder_in_use(str(self.path), owner, is_own=owner == _this_process()) from None
        self._lock.truncate(0)
        self._lock.write(_this_process())
        self._lock.flush()
        self.job_id = ""
        self.resumed = False
        self.origin: Origin | None = None

    @property
    def first_epoch(self) -> int:
        """The number of the job's first epoch; Spark counts its batches from 0."""
        return 0 if self.origin is None else self.origin.epoch + 1

    def claim(self, plan: JobPlan, origin: Origin | None = None) -> None:
        """Take the folder for a plan: note the plan and the origin in a new folder, compare them in an old one."""
        shape = shape_of(plan)
        file = self.path / "job.json"
        if not file.exists():
            self.job_id, self.origin = uuid.uuid4().hex, origin
            content = {"format": _FORMAT, "job": plan.graph.name, "id": self.job_id, "shape": shape}
            if origin is not None:
                content["origin"] = origin.to_json()
            write_atomically(file, json.dumps(content, indent=2, sort_keys=True).encode())
            return
        try:
            known = json.loads(file.read_text())
            self.job_id = known["id"]
            self.origin = Origin.from_json(known["origin"]) if "origin" in known else None
            found = differences(known["shape"], shape)
        except (ValueError, KeyError, TypeError) as error:
            raise JobError.corrupt(str(file), str(error)) from None
        if origin is not None:
            if self.origin is None or not self.origin.is_same(origin):
                raise JobError.has_a_job(str(self.path), origin.path)
            self.origin = origin  # its savepoint may have moved since
        if found:
            raise JobError.other_program(str(self.path), found)
        self.resumed = True

    def is_claimed(self) -> bool:
        """Whether there is a job in it."""
        return (self.path / "job.json").exists()

    def give_back(self) -> None:
        """Forget the job of a folder that was new when it was claimed and in which nothing was committed."""
        if not self.resumed and not (self.checkpoint / "commits").exists():
            (self.path / "job.json").unlink(missing_ok=True)

    def close(self) -> None:
        """Let another process have the folder."""
        self._lock.close()


def _this_process() -> str:
    return f"{os.getpid()} on {socket.gethostname()}"


def shape_of(plan: JobPlan) -> dict[str, Any]:
    """What must stay the same for stored state to fit: parallelism, key groups, levels, keys and states of steps."""
    entries: dict[str, Any] = {}
    for node_id, level in plan.level_of_entry.items():
        node = plan.graph.node(node_id)
        entry: dict[str, Any] = {"level": level}
        if node.is_stateful:
            entry.update(node.kept())
        entries[plan.graph.uid(node)] = entry
    sources = [plan.graph.uid(node) for node in plan.sources()]
    return {"parallelism": plan.parallelism, "key groups": plan.groups, "steps": entries, "sources": sources}


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What is not the same in two shapes, in words."""
    new = json.loads(json.dumps(new))  # as it is read back
    found = [
        f"{name} was {old[name]}, is {new[name]}"
        for name in ("parallelism", "key groups", "sources")
        if old[name] != new[name]
    ]
    steps, now = old["steps"], new["steps"]
    found += [f"step {uid!r} is gone" for uid in steps if uid not in now]
    found += [f"step {uid!r} is new" for uid in now if uid not in steps]
    for uid in steps:
        if uid in now and steps[uid] != now[uid]:
            found.append(f"step {uid!r} was {json.dumps(steps[uid])}, is {json.dumps(now[uid])}")
    return found
