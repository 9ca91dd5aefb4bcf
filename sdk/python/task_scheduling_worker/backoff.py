"""Waits between attempts while the service is unavailable."""

from __future__ import annotations

import random
import threading
from typing import Optional

_FIRST_SECONDS = 0.1
_MOST_SECONDS = 5.0


class Backoff:
    """Doubles the wait after each failure, up to five seconds."""

    def __init__(self) -> None:
        self._seconds = _FIRST_SECONDS

    def wait(self, ended: threading.Event, retry_after: Optional[float] = None) -> bool:
        """Waits before the next attempt.

        ``retry_after`` is the number of seconds that the service asked for. Returns False once ``ended`` is set.
        """
        # Workers that lost the service together must not return together.
        seconds = self._seconds * random.uniform(0.5, 1.0)
        self._seconds = min(self._seconds * 2, _MOST_SECONDS)
        return not ended.wait(max(seconds, retry_after or 0.0))
