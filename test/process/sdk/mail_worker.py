"""A worker of the tests. It reports what it does on standard output, and ends a job once a file exists."""

import json
import logging
import os
from pathlib import Path

from task_scheduling_worker import Job, Permanent, Worker

logging.basicConfig(level=logging.INFO)
name = os.environ["WORKER_NAME"]
worker = Worker(
    os.environ["SVC_URL"],
    agent_id=os.environ["SVC_AGENT_ID"],
    agent_secret=os.environ["SVC_AGENT_SECRET"],
    name=name,
    slots=2,
)


def say(what: str, job: Job) -> None:
    print(json.dumps({"what": what, "key": job.idempotency_key, "attempt": job.attempt}), flush=True)


@worker.tool(
    "emails.send",
    description="Sends an email",
    schema={"type": "object", "required": ["to"], "properties": {"to": {"type": "string"}}},
)
def send(job: Job) -> dict:
    job.log(f"connecting for {job.arguments['to']}")
    job.progress(0.5)
    say("began", job)
    after = job.arguments.get("after")
    while after is not None and not Path(after).exists():
        if job.canceled.wait(0.02):
            say("canceled", job)
            raise Permanent("canceled")
    say("ended", job)
    return {"by": name, "key": job.idempotency_key}


worker.run()
print(json.dumps({"what": "stopped"}), flush=True)
