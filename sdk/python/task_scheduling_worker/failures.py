"""Logs what fails again and again: once, then once a minute with the count, and when it works again."""

from __future__ import annotations

import logging
import threading
import time
from typing import Optional

_SECONDS_BETWEEN_LINES = 60.0


class Failures:
    """The failures of one kind of request. Several threads may use it."""

    def __init__(self, log: logging.Logger, what: str) -> None:
        self._log = log
        self._what = what
        self._lock = threading.Lock()
        self._count = 0
        self._logged_at: Optional[float] = None

    def failed(self, error: Exception) -> None:
        """The request failed and will be repeated."""
        with self._lock:
            self._count += 1
            now = time.monotonic()
            if self._logged_at is None:
                self._log.warning("%s failed, retrying: %s", self._what, error)
            elif now - self._logged_at >= _SECONDS_BETWEEN_LINES:
                self._log.warning("%s has failed %d times, retrying: %s", self._what, self._count, error)
            else:
                return
            self._logged_at = now

    def worked(self) -> None:
        """The request succeeded."""
        with self._lock:
            if self._logged_at is None:
                return
            self._log.warning("%s works again after %d failures", self._what, self._count)
            self._count = 0
            self._logged_at = None
