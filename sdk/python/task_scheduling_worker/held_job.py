"""A job that this worker holds."""

from __future__ import annotations

import threading
import time
from typing import Any, Callable, Mapping

from .job import Job


class HeldJob:
    """A job with its lease."""

    def __init__(self, document: Mapping[str, Any], on_update: Callable[["HeldJob"], None]) -> None:
        self.job = Job(document, lambda: on_update(self))
        self.lease: str = document["lease"]
        #: When the next heartbeat is due, on the monotonic clock.
        self.due = time.monotonic()
        self.last_sent = float("-inf")
        #: Keeps the lines of two heartbeats in order.
        self.sending = threading.Lock()
        #: The service has said that the lease is not valid anymore.
        self.is_lost = False

    def __str__(self) -> str:
        return f"job {self.job.id} ({self.job.tool}, run {self.job.run_id})"

    def lose(self) -> None:
        """The result is no longer wanted from this worker."""
        self.is_lost = True
        self.job.canceled.set()
