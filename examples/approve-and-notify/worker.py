"""Writes invoices and sends emails: `python3 worker.py`, after `pip install ./sdk/python`.

SVC_URL, SVC_AGENT_ID and SVC_AGENT_SECRET say where the service is and who the worker is. OUTBOX is the file to which
emails are written.
"""

import os
import sqlite3
import sys
from contextlib import closing

from task_scheduling_worker import Job, Permanent, Worker

outbox = os.environ.get("OUTBOX", "outbox.db")
worker = Worker(
    os.environ["SVC_URL"],
    agent_id=os.environ["SVC_AGENT_ID"],
    agent_secret=os.environ["SVC_AGENT_SECRET"],
    name=sys.argv[1] if len(sys.argv) > 1 else None,
)

ORDER = {
    "type": "object",
    "required": ["order", "total"],
    "properties": {"order": {"type": "integer"}, "total": {"type": "number"}},
}
EMAIL = {
    "type": "object",
    "required": ["to", "text"],
    "properties": {"to": {"type": "string"}, "text": {"type": "string"}},
}


def work(job: Job, seconds: float) -> None:
    """Takes some time, and shows how far it is."""
    for percent in range(0, 100, 5):
        job.progress(percent / 100)
        if job.canceled.wait(seconds / 20):
            raise Permanent("canceled")


@worker.tool("invoices.write", description="Writes the invoice of an order", schema=ORDER)
def write_invoice(job: Job) -> dict:
    job.log(f"writing the invoice of order {job.arguments['order']}")
    work(job, 1)
    return {"invoice": f"invoice-{job.arguments['order']}.pdf"}


@worker.tool("emails.send", description="Sends an email", schema=EMAIL)
def send_email(job: Job) -> dict:
    job.log(f"sending to {job.arguments['to']}")
    work(job, 4)
    with closing(sqlite3.connect(outbox)) as connection, connection:
        connection.execute("CREATE TABLE IF NOT EXISTS sent (key TEXT PRIMARY KEY, recipient TEXT, text TEXT)")
        # All tries of a step have the same key, on whatever worker: the email is sent once.
        row = (job.idempotency_key, job.arguments["to"], job.arguments["text"])
        connection.execute("INSERT OR IGNORE INTO sent VALUES (?, ?, ?)", row)
    return {"sent_to": job.arguments["to"]}


if __name__ == "__main__":
    worker.run()
