"""A worker of your own: `python examples/python-worker/worker.py`, after `pip install ./sdk/python`.

SVC_URL, SVC_AGENT_ID and SVC_AGENT_SECRET say where the service is and who the worker is. DATABASE is where it stores
what it has done; worker.db by default.
"""

import logging
import os
import sqlite3
from contextlib import closing

from task_scheduling_worker import Job, Permanent, Retryable, Worker

logging.basicConfig(level=logging.INFO)
database = os.environ.get("DATABASE", "worker.db")
worker = Worker(
    os.environ["SVC_URL"],
    agent_id=os.environ["SVC_AGENT_ID"],
    agent_secret=os.environ["SVC_AGENT_SECRET"],
    slots=20,
)


@worker.tool(
    "emails.send",
    description="Sends an email",
    schema={
        "type": "object",
        "required": ["to", "subject"],
        "properties": {"to": {"type": "string"}, "subject": {"type": "string"}},
        "additionalProperties": False,
    },
)
def send_email(job: Job) -> dict:
    if "@" not in job.arguments["to"]:
        raise Permanent(f"{job.arguments['to']} is not an address")
    with closing(sqlite3.connect(database)) as connection, connection:
        # Another try, or another worker, gets the same key. The email is written once.
        connection.execute("CREATE TABLE IF NOT EXISTS outbox (key TEXT PRIMARY KEY, recipient TEXT, subject TEXT)")
        row = (job.idempotency_key, job.arguments["to"], job.arguments["subject"])
        written = connection.execute("INSERT OR IGNORE INTO outbox VALUES (?, ?, ?)", row).rowcount
    job.log(f"wrote an email to {job.arguments['to']}" if written else "the email was already written")
    return {"to": job.arguments["to"], "is_new": written == 1}


@worker.tool(
    "numbers.sum",
    description="Adds the numbers up to a limit, slowly",
    schema={
        "type": "object",
        "required": ["limit"],
        "properties": {"limit": {"type": "integer", "minimum": 1, "maximum": 1000}},
    },
)
def sum_numbers(job: Job) -> dict:
    total, limit = 0, job.arguments["limit"]
    for number in range(1, limit + 1):
        # A long function looks at both: nobody can interrupt it.
        if job.canceled.wait(0.01):
            raise Permanent("canceled")
        if worker.stopping:
            raise Retryable("the worker is stopping")
        total += number
        job.progress(number / limit)
    return {"sum": total}


if __name__ == "__main__":
    worker.run()
