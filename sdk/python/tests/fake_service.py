"""A stand-in of the service over real HTTP, whose answers a test chooses."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, Queue
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

#: The longest wait of a test, in seconds.
LIMIT = 15.0
#: Status, body and headers.
Answer = Tuple[int, Dict[str, Any], Dict[str, str]]


class Request(NamedTuple):
    method: str
    path: str
    body: Any
    token: Optional[str]


class FakeService:
    """Registers one worker after another, hands out the jobs of the test, and takes all results."""

    def __init__(self) -> None:
        self.requests: List[Request] = []
        #: Each replaces the next answer to requests whose path has this ending.
        self._answers: List[Tuple[str, Answer]] = []
        self._changed = threading.Condition()
        self._jobs: "Queue[Dict[str, Any]]" = Queue()
        self._count = 0
        self._drained = threading.Event()
        self.expires_in = 3600
        self.heartbeat_seconds: float = 60
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                raw = self.rfile.read(length)
                authorization = self.headers.get("Authorization")
                token = authorization.split(" ", 1)[1] if authorization else None
                path = self.path.partition("?")[0]
                body = json.loads(raw) if raw else None
                status, answer, headers = fake._answer(Request(self.command, path, body, token), self.path)
                text = json.dumps(answer).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_POST = do_DELETE = _serve

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # A worker may leave in the middle of a request.

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._drained.set()
        self._server.shutdown()
        self._server.server_close()

    def answer_next(
        self,
        ending: str,
        status: int,
        body: Optional[Dict[str, Any]] = None,
        headers: Optional[Dict[str, str]] = None,
    ) -> None:
        """The next request whose path ends so is answered with this; the one after it as usual."""
        self._answers.append((ending, (status, body or {"message": f"answer {status}"}, headers or {})))

    def give(self, *arguments: Any, tool: str = "echo") -> None:
        """Offers a job for each of the arguments."""
        for each in arguments:
            self._count += 1
            self._jobs.put(
                {
                    "job_id": f"job-{self._count}",
                    "lease": f"lease-{self._count}",
                    "run_id": "run-1",
                    "task_id": "task-1",
                    "step": "first",
                    "tool": tool,
                    "arguments": each,
                    "idempotency_key": "run-1:first",
                    "attempt": 1,
                    "deadline": "2026-03-01T09:00:00.250Z",
                    "traceparent": None,
                }
            )

    def wait(self, predicate: Callable[[Request], bool], count: int = 1) -> List[Request]:
        """Waits for so many fitting requests, and returns all."""
        found: List[Request] = []

        def have() -> bool:
            found[:] = [request for request in self.requests if predicate(request)]
            return len(found) >= count

        with self._changed:
            if not self._changed.wait_for(have, LIMIT):
                raise AssertionError(f"waited in vain; the requests were {self.requests}")
        return found

    def wait_for(self, ending: str, count: int = 1) -> List[Request]:
        """Waits for so many requests whose path ends so."""
        return self.wait(lambda request: request.path.endswith(ending), count)

    def results(self, count: int) -> List[Dict[str, Any]]:
        """Waits for so many results, sent in whatever way, and returns all in the order of their jobs."""
        found: List[Dict[str, Any]] = []

        def have() -> bool:
            found.clear()
            for request in self.requests:
                if request.path.endswith("/results"):
                    found.extend(request.body["results"])
                elif request.path.endswith(("/complete", "/fail")):
                    found.append({"job_id": request.path.split("/")[2], **request.body})
            return len(found) >= count

        with self._changed:
            if not self._changed.wait_for(have, LIMIT):
                raise AssertionError(f"waited in vain; the requests were {self.requests}")
        return sorted(found, key=lambda result: int(result["job_id"].split("-")[1]))

    def _answer(self, request: Request, path: str) -> Answer:
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
            for index, (ending, answer) in enumerate(self._answers):
                if request.path.endswith(ending):
                    del self._answers[index]
                    return answer
        return (*self._usual_answer(request, path), {})

    def _usual_answer(self, request: Request, path: str) -> Tuple[int, Dict[str, Any]]:
        if request.path.endswith("/auth/token"):
            number = sum(1 for each in self.requests if each.path.endswith("/auth/token"))
            return 200, {"access_token": f"token-{number}", "expires_in": self.expires_in}
        if request.path == "/workers":
            number = sum(1 for each in self.requests if each.path == "/workers")
            seconds = {"lease_seconds": 180, "heartbeat_seconds": self.heartbeat_seconds}
            return 201, {"worker_id": f"worker-{number}", **seconds}
        if request.method == "DELETE":
            self._drained.set()
            return 200, {"success": True}
        if request.path.endswith("/jobs"):
            return 200, {"jobs": self._take(int(path.rpartition("max=")[2]))}
        if request.path.endswith("/results"):
            answers = [{"job_id": each["job_id"], "status": 200} for each in request.body["results"]]
            return 200, {"results": answers}
        return 200, {"success": True, "cancel_requested": False}

    def _take(self, most: int) -> List[Dict[str, Any]]:
        jobs: List[Dict[str, Any]] = []
        while not self._drained.is_set() and not jobs:
            try:
                jobs.append(self._jobs.get(timeout=0.02))
            except Empty:
                continue
        while jobs and len(jobs) < most and not self._jobs.empty():
            jobs.append(self._jobs.get())
        return jobs
