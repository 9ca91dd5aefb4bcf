"""Delivers the results of jobs."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, List, NamedTuple, Optional

from .backoff import Backoff
from .connection import Refused, Service, Unavailable
from .encoding import encode, well_formed
from .failures import Failures
from .held_job import HeldJob

#: Results in one request.
_MOST_RESULTS = 100
#: Bytes of results in one request; a larger result is sent alone.
_MOST_BYTES = 900_000
#: How long the first result waits for others, in seconds.
_LINGER = 0.003
#: With more results than this undelivered, the worker asks for no more jobs.
_MOST_WAITING = 1000
#: Characters of an error that the service keeps.
_ERROR_LENGTH = 4000

_log = logging.getLogger("task_scheduling_worker")


class Outcome(NamedTuple):
    """How a job ended. ``fields`` are those of the request, as JSON without the outer braces."""

    held: HeldJob
    fields: bytes
    is_failure: bool


def completed(held: HeldJob, result: Any) -> Outcome:
    """The outcome of a tool that has returned. Raises TypeError, ValueError or RecursionError if that is not JSON."""
    return Outcome(held, b'"result":' + encode(result), False)


def failed(held: HeldJob, error: str, retryable: bool) -> Outcome:
    """The outcome of a tool that has failed."""
    fields = encode({"error": well_formed(error, _ERROR_LENGTH) or "failed", "retryable": retryable})
    return Outcome(held, fields[1:-1], True)


class Results:
    """Sends results in batches from one thread, and repeats that until the service has answered for each."""

    def __init__(
        self, service: Service, worker_id: Callable[[], Optional[str]], on_over: Callable[[HeldJob], None]
    ) -> None:
        self._service = service
        self._worker_id = worker_id
        self._on_over = on_over
        self._changed = threading.Condition()
        self._waiting: Deque[Outcome] = deque()
        self._ended = threading.Event()
        self._failures = Failures(_log, "delivery of results")

    def add(self, outcome: Outcome) -> None:
        """Takes a result to deliver."""
        with self._changed:
            self._waiting.append(outcome)
            self._changed.notify_all()

    def wait_for_room(self, seconds: float) -> bool:
        """Returns False if too many results still wait after so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._waiting) < _MOST_WAITING, seconds)

    def end(self) -> None:
        """Ends the thread. Results that have not been delivered are dropped."""
        self._ended.set()
        with self._changed:
            self._changed.notify_all()

    def run(self) -> None:
        """The thread's work, until :meth:`end`."""
        while not self._ended.is_set():
            self._deliver(self._next_batch())

    def _next_batch(self) -> List[Outcome]:
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) > 0 or self._ended.is_set())
            is_full = len(self._waiting) >= _MOST_RESULTS
        if not is_full:
            time.sleep(_LINGER)
        batch: List[Outcome] = []
        size = 0
        with self._changed:
            if self._ended.is_set():
                return []
            while self._waiting and len(batch) < _MOST_RESULTS:
                size += len(self._waiting[0].fields)
                if batch and size > _MOST_BYTES:
                    break
                batch.append(self._waiting.popleft())
            self._changed.notify_all()
        return batch

    def _deliver(self, batch: List[Outcome]) -> None:
        backoff = Backoff()
        while batch:
            for outcome in [each for each in batch if each.held.is_lost]:
                batch.remove(outcome)
                self._drop(outcome, "its lease was lost")
            if not batch:
                return
            try:
                if len(batch) > 1:
                    self._send_together(batch)
                else:
                    self._send_alone(batch)
                self._failures.worked()
            except Unavailable as error:
                self._failures.failed(error)
                if not backoff.wait(self._ended, error.retry_after):
                    return

    def _send_together(self, batch: List[Outcome]) -> None:
        """Removes the results that are answered from the batch. Raises Unavailable if some are left."""
        sent = b",".join(
            b'{"job_id":"%s","lease":%s,%s}' % (held.job.id.encode(), encode(held.lease), fields)
            for held, fields, _ in batch
        )
        path = f"/workers/{self._worker_id()}/results"
        try:
            answer = self._service.call("POST", path, b'{"results":[%s]}' % sent)
        except Refused as error:
            # One of them is invalid or too large, or this worker's id is gone. Alone, each has its own answer.
            _log.debug("the batch was rejected, sending its results one by one: %s", error)
            self._send_alone(batch)
            return
        left: List[Outcome] = []
        for outcome, taken in zip(batch, answer["results"]):
            status = taken["status"]
            if status == 200:
                self._on_over(outcome.held)
            elif status in (404, 409):
                self._drop(outcome, str(taken.get("message")))
            else:
                left.append(outcome)
        batch[:] = left
        if left:
            raise Unavailable(f"{len(left)} results were not taken")

    def _send_alone(self, batch: List[Outcome]) -> None:
        """Removes each result that is answered from the batch. Raises Unavailable at the first that is not."""
        while batch:
            self._send_one(batch[0])
            del batch[0]

    def _send_one(self, outcome: Outcome) -> None:
        held, fields, is_failure = outcome
        path = f"/jobs/{held.job.id}/{'fail' if is_failure else 'complete'}"
        try:
            self._service.call("POST", path, b'{"lease":%s,%s}' % (encode(held.lease), fields))
            self._on_over(held)
        except Refused as error:
            if error.status in (400, 413) and not is_failure:
                message = f"the service rejected the result of {held.job.tool}: {error}"
                _log.error("%s: %s", held, message)
                self._send_one(failed(held, message, retryable=False))
            elif error.status in (401, 403):
                raise Unavailable(str(error)) from error
            else:
                self._drop(outcome, str(error))

    def _drop(self, outcome: Outcome, reason: str) -> None:
        _log.warning("dropped the result of %s: %s", outcome.held, reason)
        self._on_over(outcome.held)
