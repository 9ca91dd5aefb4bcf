"""What is logged while the service is unavailable."""

from __future__ import annotations

import logging
import unittest
from unittest import mock

from task_scheduling_worker.failures import Failures


class LogsFailures(unittest.TestCase):
    def test_once_then_once_a_minute_and_when_it_works_again(self) -> None:
        log = logging.getLogger("failures of a test")
        failures = Failures(log, "heartbeat")
        with mock.patch("time.monotonic") as monotonic, self.assertLogs(log) as logged:
            for now in [0, 1, 59, 60, 61, 125]:
                monotonic.return_value = float(now)
                failures.failed(OSError("refused"))
            failures.worked()
            failures.worked()
            failures.failed(OSError("reset"))
        lines = [record.getMessage() for record in logged.records]
        self.assertEqual(
            lines,
            [
                "heartbeat failed, retrying: refused",
                "heartbeat has failed 4 times, retrying: refused",
                "heartbeat has failed 6 times, retrying: refused",
                "heartbeat works again after 6 failures",
                "heartbeat failed, retrying: reset",
            ],
        )
