"""The threads that run tools."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import Callable, Optional

from .held_job import HeldJob


class Slots:
    """Runs a limited number of jobs at a time. The threads do not keep the process alive."""

    def __init__(self, count: int, work: Callable[[HeldJob], None], on_thread_end: Callable[[], None]) -> None:
        self._count = count
        self._work = work
        self._on_thread_end = on_thread_end
        self._jobs: "SimpleQueue[Optional[HeldJob]]" = SimpleQueue()
        self._changed = threading.Condition()
        self._busy = 0
        self._threads = 0

    def wait_for_free(self, seconds: float) -> int:
        """The number of free slots; 0 if none becomes free in so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._busy < self._count, seconds)
            return max(0, self._count - self._busy)

    def start(self, held: HeldJob) -> None:
        """Runs a job at once, in a free slot."""
        with self._changed:
            self._busy += 1
            needs_thread = self._busy > self._threads
            if needs_thread:
                self._threads += 1
        if needs_thread:
            threading.Thread(target=self._run, name="slot", daemon=True).start()
        self._jobs.put(held)

    def end(self) -> None:
        """Ends the threads once they are free."""
        for _ in range(self._threads):
            self._jobs.put(None)

    def _run(self) -> None:
        while True:
            held = self._jobs.get()
            if held is None:
                self._on_thread_end()
                return
            try:
                self._work(held)
            finally:
                with self._changed:
                    self._busy -= 1
                    self._changed.notify_all()
