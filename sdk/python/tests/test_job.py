"""A job as its tool sees it."""

from __future__ import annotations

import unittest
from datetime import datetime, timezone

from task_scheduling_worker import Job


def job() -> Job:
    document = {"job_id": "j", "run_id": "r", "task_id": "t", "step": "s", "tool": "echo", "arguments": {"a": 1}}
    document.update(idempotency_key="r:s", attempt=2, deadline="2026-03-01T09:00:00.250Z", traceparent=None)
    return Job(document, lambda: None)


class AJob(unittest.TestCase):
    def test_has_its_deadline_in_utc(self) -> None:
        self.assertEqual(job().deadline, datetime(2026, 3, 1, 9, 0, 0, 250_000, timezone.utc))

    def test_rejects_unknown_levels(self) -> None:
        with self.assertRaisesRegex(ValueError, "level must be one of debug, info, warn, error, got 'fatal'"):
            job().log("a", level="fatal")

    def test_rejects_progress_beyond_its_bounds(self) -> None:
        for fraction in (-0.1, 1.1, float("nan")):
            with self.assertRaisesRegex(ValueError, "progress must be between 0 and 1"):
                job().progress(fraction)

    def test_keeps_at_most_a_thousand_lines_and_sends_a_hundred_at_a_time(self) -> None:
        noisy = job()
        for n in range(1500):
            noisy.log(str(n))
        sent = []
        while noisy._has_updates():
            lines, _ = noisy._take_updates()
            self.assertLessEqual(len(lines), 100)
            sent.extend(line["message"] for line in lines)
        self.assertEqual(sent, [str(n) for n in range(1000)])

    def test_puts_failed_updates_before_newer_ones(self) -> None:
        one = job()
        one.log("a")
        one.progress(0.1)
        failed = one._take_updates()
        one.log("b")
        one.progress(0.2)
        one._put_back(*failed)
        lines, progress = one._take_updates()
        self.assertEqual([line["message"] for line in lines], ["a", "b"])
        self.assertEqual(progress, 0.2)


if __name__ == "__main__":
    unittest.main()
