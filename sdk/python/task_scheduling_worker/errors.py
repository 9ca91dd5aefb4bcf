"""The exceptions that tools raise and that a worker raises."""

from __future__ import annotations


class Retryable(Exception):
    """Raised by a tool: the job failed, and another try can help. Any other exception means the same."""


class Permanent(Exception):
    """Raised by a tool: the job failed, and another try cannot help. The step fails without more tries."""


class WorkerError(Exception):
    """The worker cannot go on, such as with wrong credentials. The message says what to do."""
