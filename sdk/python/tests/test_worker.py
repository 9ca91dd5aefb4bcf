"""The worker against a stand-in of the service."""

from __future__ import annotations

import logging
import threading
import time
import unittest
from typing import Any, Optional

from task_scheduling_worker import Job, Permanent, Retryable, Worker, WorkerError

from .fake_service import LIMIT, FakeService


class WorkerCase(unittest.TestCase):
    """Runs a worker in a thread."""

    def setUp(self) -> None:
        logging.getLogger("task_scheduling_worker").setLevel(logging.CRITICAL + 1)
        self.service = FakeService()
        self.addCleanup(self.service.close)
        self.error: Optional[Exception] = None
        self.thread: Optional[threading.Thread] = None

    def worker(self, **options: Any) -> Worker:
        options = {"token": "given", "slots": 4, **options}
        return Worker(self.service.url, name="w", **options)

    def start(self, worker: Worker) -> None:
        def run() -> None:
            try:
                worker.run()
            except Exception as error:
                self.error = error

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()
        self.addCleanup(self.stop, worker)

    def stop(self, worker: Worker) -> None:
        worker.stop()
        self.ended()

    def ended(self) -> None:
        assert self.thread is not None
        self.thread.join(LIMIT)
        self.assertFalse(self.thread.is_alive(), "the worker does not end")


class RunsJobs(WorkerCase):
    def test_offers_its_tools(self) -> None:
        worker = self.worker(labels={"zone": "a"})

        @worker.tool("echo", schema={"type": "object"}, description="repeats")
        def echo(job: Job) -> Any:
            return job.arguments

        self.start(worker)
        [request] = self.service.wait_for("/workers")
        tools = [{"name": "echo", "description": "repeats", "schema": {"type": "object"}}]
        self.assertEqual(request.body, {"name": "w", "tools": tools, "slots": 4, "labels": {"zone": "a"}})

    def test_runs_as_many_jobs_at_a_time_as_it_has_slots(self) -> None:
        worker = self.worker(slots=3)
        together = threading.Barrier(3)

        @worker.tool("echo")
        def echo(job: Job) -> Any:
            together.wait(LIMIT)
            return {"n": job.arguments, "key": job.idempotency_key}

        self.start(worker)
        self.service.give(*range(6))
        results = self.service.results(6)
        self.assertEqual([each["result"]["n"] for each in results], list(range(6)))
        self.assertEqual(results[0]["result"]["key"], "run-1:first")
        self.assertEqual([each["lease"] for each in results], [f"lease-{n}" for n in range(1, 7)])

    def test_takes_no_more_jobs_than_it_has_slots(self) -> None:
        worker = self.worker(slots=2)
        begun, go_on = threading.Semaphore(0), threading.Event()

        @worker.tool("echo")
        def echo(job: Job) -> Any:
            begun.release()
            return go_on.wait(LIMIT)

        self.start(worker)
        self.service.give(1, 2, 3)
        self.assertTrue(begun.acquire(timeout=LIMIT) and begun.acquire(timeout=LIMIT))
        self.assertFalse(begun.acquire(timeout=0.5))
        go_on.set()
        self.service.results(3)

    def test_sends_results_together(self) -> None:
        worker = self.worker(slots=50)

        @worker.tool("echo")
        def echo(job: Job) -> Any:
            return job.arguments

        self.service.give(*range(200))
        self.start(worker)
        self.service.results(200)
        self.assertLess(sum(1 for each in self.service.requests if each.path.startswith("/jobs/")), 50)

    def test_tells_failures_by_the_exception(self) -> None:
        worker = self.worker()

        @worker.tool("echo")
        def echo(job: Job) -> Any:
            if job.arguments == 0:
                raise Permanent("no such address")
            if job.arguments == 1:
                raise Retryable("greylisted")
            if job.arguments == 2:
                raise KeyError("to")
            if job.arguments == 3:
                raise SystemExit(1)
            return {1, 2}

        self.start(worker)
        self.service.give(0, 1, 2, 3, 4)
        results = self.service.results(5)
        told = [(each["error"], each["retryable"]) for each in results[:4]]
        expected = [("no such address", False), ("greylisted", True), ("KeyError: 'to'", True), ("SystemExit: 1", True)]
        self.assertEqual(told, expected)
        self.assertFalse(results[4]["retryable"])
        self.assertRegex(results[4]["error"], "^the result of echo is not JSON: .*set")

    def test_rejects_numbers_and_strings_that_are_not_json(self) -> None:
        worker = self.worker()

        @worker.tool("echo")
        def echo(job: Job) -> Any:
            return float("nan") if job.arguments == "nan" else "\ud800"

        self.start(worker)
        self.service.give("nan", "surrogate")
        for each in self.service.results(2):
            self.assertRegex(each["error"], "^the result of echo is not JSON: ")
            self.assertFalse(each["retryable"])


class KeepsJobs(WorkerCase):
    def test_delivers_lines_and_progress_before_the_result(self) -> None:
        worker = self.worker()

        @worker.tool("echo")
        def echo(job: Job) -> Any:
            job.log("half way", level="debug")
            job.progress(0.5)
            job.log("\ud800")
            return None

        self.start(worker)
        self.service.give("a")
        self.service.results(1)
        beats = self.service.wait_for("/heartbeat")
        lines = [line for beat in beats for line in beat.body.get("log", [])]
        self.assertEqual([(line["level"], line["message"]) for line in lines], [("debug", "half way"), ("info", "?")])
        self.assertRegex(lines[0]["at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertIn(0.5, [beat.body.get("progress") for beat in beats])
        paths = [each.path for each in self.service.requests]
        self.assertLess(paths.index("/jobs/job-1/heartbeat"), len(paths) - 1)

    def test_sends_heartbeats_as_often_as_the_service_asks(self) -> None:
        worker = self.worker()
        self.service.heartbeat_seconds = 0.05
        go_on = threading.Event()

        @worker.tool("echo")
        def echo(job: Job) -> Any:
            return go_on.wait(LIMIT)

        self.start(worker)
        self.service.give("a")
        beats = self.service.wait_for("/jobs/job-1/heartbeat", 3)
        self.assertEqual(beats[0].body, {"lease": "lease-1"})
        go_on.set()

    def test_signals_that_a_job_was_canceled(self) -> None:
        worker = self.worker()
        self.service.heartbeat_seconds = 0.05
        self.service.answer_next("/heartbeat", 200, {"cancel_requested": True})

        @worker.tool("echo")
        def echo(job: Job) -> Any:
            if job.canceled.wait(LIMIT):
                raise Permanent("canceled")

        self.start(worker)
        self.service.give("a")
        self.assertEqual(self.service.results(1)[0]["error"], "canceled")

    def test_keeps_lines_whose_heartbeat_failed(self) -> None:
        worker = self.worker()
        self.service.answer_next("/heartbeat", 503)

        @worker.tool("echo")
        def echo(job: Job) -> Any:
            job.log("once")

        self.start(worker)
        self.service.give("a")
        self.service.results(1)
        beats = self.service.wait_for("/heartbeat", 2)
        self.assertEqual([beat.body.get("log") for beat in beats], [beats[0].body["log"]] * 2)

    def test_drops_the_result_of_a_lost_lease(self) -> None:
        worker = self.worker()
        self.service.heartbeat_seconds = 0.05
        self.service.answer_next("/jobs/job-1/heartbeat", 409)

        @worker.tool("echo")
        def echo(job: Job) -> Any:
            return job.canceled.wait(LIMIT) if job.arguments == "lost" else True

        self.start(worker)
        self.service.give("lost")
        self.service.wait_for("/heartbeat")
        self.service.give("next")
        [result] = self.service.results(1)
        self.stop(worker)
        self.assertEqual(result["job_id"], "job-2")
        self.assertEqual(len(self.service.results(1)), 1)


class DeliversResults(WorkerCase):
    def echoing(self, **options: Any) -> Worker:
        worker = self.worker(**options)

        @worker.tool("echo")
        def echo(job: Job) -> Any:
            return job.arguments

        return worker

    def test_repeats_them_while_the_service_is_unavailable(self) -> None:
        for status in (503, 500, 429):
            self.service.answer_next("/complete", status)
        self.start(self.echoing())
        self.service.give("a")
        self.service.wait_for("/complete", 4)

    def test_drops_one_that_is_too_late(self) -> None:
        self.service.answer_next("/complete", 409)
        worker = self.echoing()
        self.start(worker)
        self.service.give("late")
        self.service.wait_for("/complete")
        self.service.give("next")
        self.service.wait_for("job-2/complete")
        self.stop(worker)
        self.assertEqual(len(self.service.wait_for("/complete")), 2)

    def test_sends_those_of_a_rejected_batch_one_by_one(self) -> None:
        for _ in range(20):
            self.service.answer_next("/results", 413)
        self.service.answer_next("job-2/complete", 413, {"message": "the body may have 1048576 bytes"})
        worker = self.worker()
        together = threading.Barrier(3)

        @worker.tool("echo")
        def echo(job: Job) -> Any:
            together.wait(LIMIT)
            return job.arguments

        self.start(worker)
        self.service.give(1, 2, 3)
        self.service.wait_for("job-1/complete")
        self.service.wait_for("job-3/complete")
        [failure] = self.service.wait_for("job-2/fail")
        self.assertFalse(failure.body["retryable"])
        self.assertIn("the body may have 1048576 bytes", failure.body["error"])


class StaysRegistered(WorkerCase):
    def echoing(self, **options: Any) -> Worker:
        worker = self.worker(**options)

        @worker.tool("echo")
        def echo(job: Job) -> Any:
            return job.arguments

        return worker

    def test_registers_again_when_its_id_is_gone_or_silent(self) -> None:
        self.service.answer_next("worker-1/jobs", 404)
        self.service.answer_next("worker-2/jobs", 409, {"message": "silent", "details": {"reason": "silent"}})
        self.start(self.echoing())
        self.service.give("a")
        self.service.results(1)
        self.assertEqual(len(self.service.wait_for("/workers")), 3)

    def test_waits_for_a_service_that_is_not_there_yet(self) -> None:
        self.service.answer_next("/workers", 503)
        self.start(self.echoing())
        self.service.wait_for("/workers", 2)

    def test_pauses_when_it_is_answered_at_once_without_jobs(self) -> None:
        for _ in range(3):
            self.service.answer_next("/jobs", 200, {"jobs": []})
        began = time.monotonic()
        self.start(self.echoing())
        self.service.wait_for("/jobs", 4)
        # At least half of 0.1, 0.2 and 0.4 s.
        self.assertGreater(time.monotonic() - began, 0.35)

    def test_asks_a_service_that_is_stopping_when_it_says(self) -> None:
        for _ in range(2):
            self.service.answer_next("/jobs", 503, {"message": "stopping"}, {"Retry-After": "1"})
        began = time.monotonic()
        self.start(self.echoing())
        self.service.wait_for("/jobs", 3)
        self.assertGreaterEqual(time.monotonic() - began, 2)
        self.assertLess(time.monotonic() - began, 12)

    def test_ends_when_it_is_drained(self) -> None:
        self.service.answer_next("/jobs", 409, {"message": "drained", "details": {"reason": "drained"}})
        self.start(self.echoing())
        self.ended()
        self.assertIsNone(self.error)

    def test_fails_when_another_worker_takes_its_name(self) -> None:
        self.service.answer_next("/jobs", 409, {"message": "was replaced", "details": {"reason": "replaced"}})
        self.start(self.echoing())
        self.ended()
        self.assertIsInstance(self.error, WorkerError)
        self.assertRegex(str(self.error), "was replaced; give each process a name of its own$")

    def test_fails_when_its_tools_are_rejected(self) -> None:
        self.service.answer_next("/workers", 409, {"message": "echo is a tool of the service"})
        self.start(self.echoing())
        self.ended()
        self.assertEqual(str(self.error), "POST /workers: echo is a tool of the service")

    def test_renews_its_token_when_it_is_rejected(self) -> None:
        self.service.answer_next("/jobs", 401)
        self.start(self.echoing(token=None, agent_id="a", agent_secret="s"))
        polls = self.service.wait_for("/jobs", 2)
        self.assertEqual([each.token for each in polls], ["token-1", "token-2"])
        signed_in = self.service.wait_for("/auth/token")
        self.assertEqual(signed_in[0].body, {"agent_id": "a", "agent_secret": "s"})

    def test_renews_its_token_before_it_expires(self) -> None:
        self.service.expires_in = 0
        self.start(self.echoing(token=None, agent_id="a", agent_secret="s"))
        self.service.give("a")
        [request] = self.service.wait_for("/complete")
        self.assertNotEqual(request.token, "token-1")

    def test_fails_with_wrong_credentials(self) -> None:
        self.service.answer_next("/auth/token", 401, {"message": "wrong id or secret"})
        self.start(self.echoing(token=None, agent_id="a", agent_secret="s"))
        self.ended()
        self.assertIsInstance(self.error, WorkerError)
        self.assertIn("wrong id or secret", str(self.error))


class Stops(WorkerCase):
    def test_waits_for_its_jobs(self) -> None:
        worker = self.worker()

        @worker.tool("echo")
        def echo(job: Job) -> Any:
            began.set()
            return go_on.wait(LIMIT)

        began, go_on = threading.Event(), threading.Event()
        self.start(worker)
        self.service.give("a")
        self.assertTrue(began.wait(LIMIT))
        worker.stop()
        self.service.wait(lambda request: request.method == "DELETE")
        self.assertTrue(worker.stopping)
        assert self.thread is not None
        self.thread.join(0.5)
        self.assertTrue(self.thread.is_alive())
        go_on.set()
        self.ended()
        self.assertTrue(self.service.results(1)[0]["result"])

    def test_leaves_jobs_that_take_too_long(self) -> None:
        worker = self.worker(shutdown_seconds=0.1)
        began, canceled, checked = threading.Event(), threading.Event(), threading.Event()

        @worker.tool("echo")
        def echo(job: Job) -> Any:
            began.set()
            if job.canceled.wait(LIMIT):
                canceled.set()
            checked.wait(LIMIT)

        self.start(worker)
        self.service.give("a")
        self.assertTrue(began.wait(LIMIT))
        self.stop(worker)
        self.assertTrue(canceled.wait(LIMIT))
        self.assertEqual(self.service.results(0), [])
        checked.set()


class RejectsMistakes(unittest.TestCase):
    def test_names_the_remedy(self) -> None:
        with self.assertRaisesRegex(ValueError, "base_url must be an address such as http"):
            Worker("localhost:8000", token="t")
        with self.assertRaisesRegex(ValueError, "either token, or agent_id and agent_secret"):
            Worker("http://localhost:8000")
        with self.assertRaisesRegex(ValueError, "slots must be between 1 and 10000, got 0"):
            Worker("http://localhost:8000", token="t", slots=0)
        worker = Worker("http://localhost:8000", token="t")
        with self.assertRaisesRegex(WorkerError, "define one with @worker.tool"):
            worker.run()

        async def later(job: Job) -> None:
            pass

        with self.assertRaisesRegex(TypeError, "must be a plain function"):
            worker.tool("later")(later)
        worker.tool("twice")(print)
        with self.assertRaisesRegex(ValueError, "the tool twice is already defined"):
            worker.tool("twice")(print)


if __name__ == "__main__":
    unittest.main()
