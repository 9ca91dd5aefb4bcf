"""Keeps the leases of jobs, and delivers what their tools log."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, Dict, List, Set

from .backoff import Backoff
from .connection import Refused, Service, Unavailable
from .encoding import encode
from .failures import Failures
from .held_job import HeldJob

#: Updates of a job are sent at most this often, in seconds.
_UPDATE_INTERVAL = 1.0
#: How long after a failure the heartbeat is repeated, in seconds.
_RETRY_SECONDS = 1.0
#: How long a heartbeat may take, in seconds.
_TIMEOUT = 10.0

_log = logging.getLogger("task_scheduling_worker")


class Heartbeats:
    """Sends a heartbeat of each held job when it is due, from one thread."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._changed = threading.Condition()
        self._held: Set[HeldJob] = set()
        self._ended = threading.Event()
        self._failures = Failures(_log, "heartbeat")
        #: As the service asks, in seconds.
        self.interval = 10.0

    def add(self, held: HeldJob) -> None:
        """Begins with the heartbeats of a job that was just received."""
        with self._changed:
            held.due = time.monotonic() + self.interval
            self._held.add(held)
            self._changed.notify_all()

    def remove(self, held: HeldJob) -> None:
        """Ends the heartbeats of a job that is over."""
        with self._changed:
            self._held.discard(held)
            self._changed.notify_all()

    def hasten(self, held: HeldJob) -> None:
        """Makes the next heartbeat due early, because there is something to tell."""
        with self._changed:
            soon = max(time.monotonic(), held.last_sent + _UPDATE_INTERVAL)
            if soon < held.due and not held.is_lost:
                held.due = soon
                self._changed.notify_all()

    def jobs(self) -> List[HeldJob]:
        """The jobs whose results have not been delivered."""
        with self._changed:
            return list(self._held)

    def wait_for_none(self, seconds: float) -> bool:
        """Waits until no job is held. Returns False if some are after so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._held) == 0, max(0.0, seconds))

    def end(self) -> None:
        """Ends the thread, and all waits of :meth:`flush`."""
        self._ended.set()
        with self._changed:
            self._changed.notify_all()

    def flush(self, held: HeldJob) -> None:
        """Delivers all that a tool has logged, before its result. Waits while the service is unavailable."""
        backoff = Backoff()
        while True:
            # A heartbeat in progress puts its lines back if it fails.
            with held.sending:
                if held.is_lost or not held.job._has_updates():
                    return
            try:
                self._beat(held)
            except Unavailable as error:
                self._failures.failed(error)
                if not backoff.wait(self._ended, error.retry_after):
                    return

    def run(self) -> None:
        """The thread's work, until :meth:`end`."""
        while not self._ended.is_set():
            for held in self._wait_for_due():
                try:
                    self._beat(held)
                except Unavailable as error:
                    self._failures.failed(error)
                    self._postpone(min(error.retry_after or _RETRY_SECONDS, self.interval))
                    break

    def _wait_for_due(self) -> List[HeldJob]:
        with self._changed:
            while not self._ended.is_set():
                now = time.monotonic()
                due = [held for held in self._held if held.due <= now]
                if due:
                    return sorted(due, key=lambda held: held.due)
                first = min((held.due for held in self._held), default=None)
                self._changed.wait(None if first is None else min(first - now, self.interval))
            return []

    def _postpone(self, seconds: float) -> None:
        """While the service is unavailable, one failed heartbeat stands for all that are due."""
        with self._changed:
            then = time.monotonic() + seconds
            for held in self._held:
                held.due = max(held.due, then)

    def _beat(self, held: HeldJob) -> None:
        """Sends a heartbeat with what the tool has logged. Raises Unavailable."""
        job = held.job
        with held.sending:
            lines, progress = job._take_updates()
            body: Dict[str, Any] = {"lease": held.lease}
            if progress is not None:
                body["progress"] = progress
            if lines:
                body["log"] = lines
            held.last_sent = time.monotonic()
            try:
                kept = self._service.call("POST", f"/jobs/{job.id}/heartbeat", encode(body), _TIMEOUT)
                self._failures.worked()
                if kept.get("cancel_requested") is True:
                    job.canceled.set()
            except Unavailable:
                job._put_back(lines, progress)
                raise
            except Refused as error:
                self._refused(held, error)
            with self._changed:
                interval = _UPDATE_INTERVAL if job._has_updates() else self.interval
                held.due = float("inf") if held.is_lost else held.last_sent + interval

    def _refused(self, held: HeldJob, error: Refused) -> None:
        if error.status in (404, 409):
            _log.warning("%s is no longer this worker's: %s", held, error)
            held.lose()
            return
        # The lines are dropped: they would be rejected again.
        _log.error("heartbeat of %s was rejected: %s", held, error)
