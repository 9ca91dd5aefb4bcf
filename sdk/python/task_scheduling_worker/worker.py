"""The worker: registers, asks for jobs, runs them."""

from __future__ import annotations

import inspect
import logging
import os
import signal
import socket
import threading
import time
from types import FrameType
from typing import Any, Callable, Dict, List, Mapping, Optional, TypeVar

from .backoff import Backoff
from .connection import Refused, Service, Unavailable
from .encoding import encode
from .errors import Permanent, Retryable, WorkerError
from .failures import Failures
from .heartbeats import Heartbeats
from .held_job import HeldJob
from .job import Job
from .results import Outcome, Results, completed, failed
from .slots import Slots

#: How long a request for jobs waits for the first one, in seconds.
_POLL_SECONDS = 30
#: Jobs in one answer.
_MOST_JOBS = 100
#: How long the service may take to drain this worker, in seconds.
_DRAIN_SECONDS = 5.0
#: How often threads look whether the worker is stopping, in seconds.
_LOOK_SECONDS = 0.2

_log = logging.getLogger("task_scheduling_worker")

Tool = TypeVar("Tool", bound=Callable[[Job], Any])


class Worker:
    """Offers functions as tools of a service, and runs the jobs that need them."""

    def __init__(
        self,
        base_url: str,
        *,
        token: Optional[str] = None,
        agent_id: Optional[str] = None,
        agent_secret: Optional[str] = None,
        name: Optional[str] = None,
        slots: int = 10,
        labels: Optional[Mapping[str, str]] = None,
        shutdown_seconds: float = 30.0,
    ) -> None:
        """Creates a worker; :meth:`run` starts it.

        :param base_url: address of the service, such as ``http://127.0.0.1:8000``
        :param token: an access token, which is not renewed
        :param agent_id: id of an agent with the scope ``jobs:work``, whose tokens are renewed
        :param agent_secret: its secret
        :param name: of this process; a second one with the same name and agent replaces it. Default: host and process id
        :param slots: how many jobs it runs at a time, 1 to 10,000; each has a thread
        :param labels: what a step's ``on`` can ask for
        :param shutdown_seconds: how long it waits for its jobs when it stops
        :raises ValueError: for an invalid address or number of slots, or without credentials
        """
        if not 1 <= slots <= 10_000:
            raise ValueError(f"slots must be between 1 and 10000, got {slots!r}")
        self._service = Service(base_url, token=token, agent_id=agent_id, agent_secret=agent_secret)
        self._name = name if name is not None else f"{socket.gethostname()}-{os.getpid()}"[-100:]
        self._slot_count = slots
        self._labels = dict(labels or {})
        self._shutdown_seconds = shutdown_seconds
        self._tools: Dict[str, Callable[[Job], Any]] = {}
        self._offers: List[Dict[str, Any]] = []
        self._worker_id: Optional[str] = None
        self._stopping = threading.Event()
        self._failures = Failures(_log, "request for jobs")
        self._signaled = False
        self._has_begun = False
        self._fault: Optional[WorkerError] = None
        self._heartbeats = Heartbeats(self._service)
        self._results = Results(self._service, lambda: self._worker_id, self._heartbeats.remove)
        self._slots = Slots(slots, self._work, self._service.leave)

    def tool(
        self, name: str, *, schema: Optional[Mapping[str, Any]] = None, description: str = ""
    ) -> Callable[[Tool], Tool]:
        """Offers the decorated function as a tool.

        The function receives the :class:`Job` and returns the step's result, which must be JSON. It fails by an
        exception: :class:`Permanent` if another try cannot help, any other if it can.

        :param name: what steps write in ``uses``
        :param schema: JSON schema of the step's arguments; default: any are allowed
        :param description: for people and language models
        :raises ValueError: for a name that this worker already offers
        :raises TypeError: for a coroutine function
        """

        def offer(function: Tool) -> Tool:
            if name in self._tools:
                raise ValueError(f"the tool {name} is already defined")
            if inspect.iscoroutinefunction(function):
                raise TypeError(f"the tool {name} must be a plain function; call asyncio.run() in it")
            self._tools[name] = function
            self._offers.append({"name": name, "description": description, "schema": dict(schema or {})})
            return function

        return offer

    @property
    def stopping(self) -> bool:
        """Whether the worker has begun to stop. A long job may look at this, and end early with :class:`Retryable`."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """Makes :meth:`run` stop gracefully. It may be called from any thread, and returns at once."""
        self._stopping.set()

    def run(self) -> None:
        """Runs jobs until the worker is stopped by :meth:`stop`, SIGTERM, SIGINT, or an operator who drains it.

        It then asks for no more jobs and waits for those that it has, for ``shutdown_seconds``. Jobs that take longer
        are left: their leases expire, and other workers get them. A second signal ends the process at once. Signals
        are handled only if this is called in the main thread.

        :raises WorkerError: if the worker cannot go on: no tools, wrong credentials, a missing scope, an invalid tool,
            or another worker with its name
        """
        if self._has_begun:
            raise WorkerError("this worker has already run; create another one")
        if not self._tools:
            raise WorkerError("the worker offers no tools; define one with @worker.tool")
        self._has_begun = True
        polling = threading.Thread(target=self._run_thread, args=(self._poll_until_stopped,), daemon=True)
        restore_signals = self._handle_signals()
        try:
            for work in (self._heartbeats.run, self._results.run):
                threading.Thread(target=self._run_thread, args=(work,), daemon=True).start()
            polling.start()
            while not self._signaled and not self._stopping.wait(_LOOK_SECONDS):
                pass
            restore_signals()
            self._finish(polling)
        finally:
            restore_signals()
            self._stopping.set()
            self._heartbeats.end()
            self._results.end()
            self._slots.end()
            self._service.leave()
        if self._fault is not None:
            raise self._fault

    def _handle_signals(self) -> Callable[[], None]:
        """Stops gracefully at the first signal. Returns what puts the handlers back that were there before."""
        if threading.current_thread() is not threading.main_thread():
            return lambda: None

        def stop(number: int, _frame: Optional[FrameType]) -> None:
            # Only a flag: an event's lock may be held by the code that the signal has interrupted.
            self._signaled = True

        before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}

        def restore() -> None:
            while before:
                number, handler = before.popitem()
                signal.signal(number, handler)

        return restore

    def _finish(self, polling: threading.Thread) -> None:
        """Asks for no more jobs, and waits for those that it has."""
        self._stopping.set()
        end = time.monotonic() + self._shutdown_seconds
        _log.info("worker is stopping, and waits for %d jobs", len(self._heartbeats.jobs()))
        if self._drain():
            # The service answers the running request; the jobs in its answer are still run.
            polling.join(max(0.0, min(_DRAIN_SECONDS, end - time.monotonic())))
        self._heartbeats.wait_for_none(end - time.monotonic())
        left = self._heartbeats.jobs()
        for held in left:
            held.job.canceled.set()
        if left:
            _log.warning("left %d jobs to other workers: they took longer than shutdown_seconds", len(left))

    def _drain(self) -> bool:
        """Returns whether the service gives this worker no more jobs."""
        if self._worker_id is None:
            return False
        try:
            self._service.call("DELETE", f"/workers/{self._worker_id}", timeout=_DRAIN_SECONDS)
            return True
        except (Refused, Unavailable) as error:
            _log.warning("could not drain the worker: %s", error)
            return isinstance(error, Refused)

    def _guard(self, work: Callable[[], None]) -> None:
        """Stops the worker if one of its threads fails. It would look alive but do nothing."""
        try:
            work()
        except Exception as error:
            _log.exception("worker failed")
            self._fail(f"{error!r}; if it is the service's answer, check base_url and both versions")

    def _run_thread(self, work: Callable[[], None]) -> None:
        self._guard(work)
        self._service.leave()

    def _poll_until_stopped(self) -> None:
        backoff = Backoff()
        while not self._stopping.is_set():
            try:
                if self._worker_id is None:
                    self._register()
                self._poll(self._worker_id or "")
                self._failures.worked()
                backoff = Backoff()
            except Unavailable as error:
                self._failures.failed(error)
                backoff.wait(self._stopping, error.retry_after)
            except Refused as error:
                self._refused(error)

    def _register(self) -> None:
        body = {"name": self._name, "tools": self._offers, "slots": self._slot_count, "labels": self._labels}
        try:
            registered = self._service.call("POST", "/workers", encode(body))
        except Refused as error:
            self._fail(str(error))
            return
        self._heartbeats.interval = float(registered["heartbeat_seconds"])
        self._worker_id = registered["worker_id"]
        _log.info("worker %s registered as %s", self._name, self._worker_id)

    def _poll(self, worker_id: str) -> None:
        """Takes jobs for the free slots. Returns without any if none is free for a while."""
        if self._stopping.is_set() or not self._results.wait_for_room(_LOOK_SECONDS):
            return
        free = self._slots.wait_for_free(_LOOK_SECONDS)
        if free == 0:
            return
        path = f"/workers/{worker_id}/jobs?wait={_POLL_SECONDS}&max={min(free, _MOST_JOBS)}"
        began = time.monotonic()
        jobs = self._service.call("POST", path, timeout=_POLL_SECONDS + 15)["jobs"]
        if not jobs and time.monotonic() - began < 1 and not self._stopping.is_set():
            # It did not wait for jobs: asking again at once would go on without end.
            raise Unavailable(f"POST /workers/{worker_id}/jobs: answered at once without jobs")
        for document in jobs:
            held = HeldJob(document, self._heartbeats.hasten)
            self._heartbeats.add(held)
            self._slots.start(held)

    def _refused(self, error: Refused) -> None:
        """The service gives this worker no jobs."""
        reason = error.details.get("reason")
        if error.status == 404 or (error.status == 409 and reason == "silent"):
            _log.warning("registering again: %s", error)
            self._worker_id = None
        elif error.status == 409 and reason == "drained":
            if not self._stopping.is_set():
                _log.info("worker was drained by an operator")
            self._stopping.set()
        elif reason == "replaced":
            self._fail(f"{error}; give each process a name of its own")
        else:
            self._fail(str(error))

    def _fail(self, message: str) -> None:
        self._fault = WorkerError(message)
        self._stopping.set()

    def _work(self, held: HeldJob) -> None:
        """Runs a job in a slot's thread."""
        outcome = self._outcome_of(held)
        self._guard(lambda: self._heartbeats.flush(held))
        self._results.add(outcome)

    def _outcome_of(self, held: HeldJob) -> Outcome:
        job = held.job
        try:
            result = self._tools[job.tool](job)
        except Permanent as error:
            return failed(held, str(error) or "Permanent", retryable=False)
        except Retryable as error:
            return failed(held, str(error) or "Retryable", retryable=True)
        except BaseException as error:  # SystemExit too: a tool must not end the thread of its slot.
            _log.exception("%s failed", held)
            return failed(held, f"{type(error).__name__}: {error}", retryable=True)
        try:
            return completed(held, result)
        except (TypeError, ValueError, RecursionError) as error:
            message = f"the result of {job.tool} is not JSON: {error}"
            _log.error("%s: %s", held, message)
            return failed(held, message, retryable=False)
