"""Runs your own Python functions as steps of the task scheduling service."""

from .errors import Permanent, Retryable, WorkerError
from .job import Job
from .worker import Worker

__all__ = ["Job", "Permanent", "Retryable", "Worker", "WorkerError"]
__version__ = "0.1.0"
