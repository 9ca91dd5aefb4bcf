"""A job as its tool sees it."""

from __future__ import annotations

import threading
from datetime import datetime, timezone
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from .encoding import well_formed

#: Lines in one heartbeat.
_LINES_PER_HEARTBEAT = 100
#: Lines that wait for a heartbeat. The service keeps fewer of them.
_MOST_LINES = 1000
#: Characters of a message that the service keeps.
_MESSAGE_LENGTH = 1000
_LEVELS = ("debug", "info", "warn", "error")


class Job:
    """One try of a step that uses a tool of this worker."""

    #: The job's id.
    id: str
    run_id: str
    task_id: str
    #: The id of the step.
    step: str
    #: The tool's name.
    tool: str
    #: The step's arguments, which fit the tool's schema.
    arguments: Any
    #: The same for all tries of the step, and for all workers that get it. Use it to do the work once.
    idempotency_key: str
    #: Which try of the step it is, from 1. A lost lease does not count as a try.
    attempt: int
    #: When the try fails, by the step's ``timeout_seconds``; in UTC.
    deadline: datetime
    #: Of the run, for your own traces; None if the run is not traced.
    traceparent: Optional[str]
    #: Set once nobody wants the result: the run was canceled, the step is over, the lease was lost, or the worker has
    #: waited for the tool long enough while it stops.
    canceled: threading.Event

    def __init__(self, document: Mapping[str, Any], on_update: Callable[[], None]) -> None:
        self.id = document["job_id"]
        self.run_id = document["run_id"]
        self.task_id = document["task_id"]
        self.step = document["step"]
        self.tool = document["tool"]
        self.arguments = document["arguments"]
        self.idempotency_key = document["idempotency_key"]
        self.attempt = document["attempt"]
        # Before Python 3.11, fromisoformat does not accept Z.
        self.deadline = datetime.fromisoformat(document["deadline"].replace("Z", "+00:00"))
        self.traceparent = document.get("traceparent")
        self.canceled = threading.Event()
        self._on_update = on_update
        self._lock = threading.Lock()
        self._lines: List[Dict[str, str]] = []
        self._progress: Optional[float] = None

    def log(self, message: str, level: str = "info") -> None:
        """Adds a line to the run's log. It is sent at once, or within a second after other lines.

        ``level`` is debug, info, warn or error. The service keeps 50 lines of a step, 1,000 characters each.
        Raises ValueError for another level.
        """
        if level not in _LEVELS:
            raise ValueError(f"level must be one of {', '.join(_LEVELS)}, got {level!r}")
        at = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"level": level, "message": well_formed(str(message), _MESSAGE_LENGTH), "at": at}
        with self._lock:
            if len(self._lines) >= _MOST_LINES:
                return
            self._lines.append(line)
        self._on_update()

    def progress(self, fraction: float) -> None:
        """Shows how much of the job is done, from 0 to 1. Raises ValueError for another number."""
        if not 0 <= fraction <= 1:
            raise ValueError(f"progress must be between 0 and 1, got {fraction!r}")
        with self._lock:
            self._progress = float(fraction)
        self._on_update()

    def _has_updates(self) -> bool:
        with self._lock:
            return len(self._lines) > 0 or self._progress is not None

    def _take_updates(self) -> Tuple[List[Dict[str, str]], Optional[float]]:
        with self._lock:
            lines, progress = self._lines[:_LINES_PER_HEARTBEAT], self._progress
            self._lines = self._lines[_LINES_PER_HEARTBEAT:]
            self._progress = None
            return lines, progress

    def _put_back(self, lines: List[Dict[str, str]], progress: Optional[float]) -> None:
        """After a failed heartbeat. Newer updates stay newer."""
        with self._lock:
            self._lines = lines + self._lines
            if self._progress is None:
                self._progress = progress
