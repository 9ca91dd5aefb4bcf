"""Requests to the service."""

from __future__ import annotations

import http.client
import json
import threading
import time
from typing import Any, Dict, Optional, Tuple, cast
from urllib.parse import urlsplit

from .encoding import encode

#: How long a request may take by default, in seconds.
REQUEST_SECONDS = 15.0
#: A token is renewed this long before it expires, in seconds.
_RENEWAL_SECONDS = 60.0


class Refused(Exception):
    """The service answered with an error that a repetition does not change."""

    def __init__(self, asked: str, status: int, body: Dict[str, Any]) -> None:
        message = body.get("message") or f"answered with {status}"
        super().__init__(f"{asked}: {message}")
        self.status = status
        details = body.get("details")
        self.details: Dict[str, Any] = details if isinstance(details, dict) else {}


class Unavailable(Exception):
    """The service could not be reached, or asks for a later repetition."""

    def __init__(self, message: str, retry_after: Optional[float] = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Service:
    """Calls a service, and manages the token. Each thread has its own persistent connection."""

    def __init__(
        self,
        base_url: str,
        *,
        token: Optional[str] = None,
        agent_id: Optional[str] = None,
        agent_secret: Optional[str] = None,
    ) -> None:
        url = urlsplit(base_url)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(f"base_url must be an address such as http://127.0.0.1:8000, got {base_url!r}")
        if (token is None) == (agent_id is None or agent_secret is None):
            raise ValueError("give either token, or agent_id and agent_secret")
        self._scheme = url.scheme
        self._host = url.hostname
        self._port = url.port
        self._path = url.path.rstrip("/")
        self._threads = threading.local()
        self._token = token
        self._credentials = None if token is not None else {"agent_id": agent_id, "agent_secret": agent_secret}
        self._renew_at = float("inf")
        self._expires_at = float("inf")
        self._signing_in = threading.Lock()

    def call(
        self, method: str, path: str, body: Optional[bytes] = None, timeout: float = REQUEST_SECONDS
    ) -> Dict[str, Any]:
        """Sends a request, and again with a new token if the first was rejected.

        ``body`` is JSON; ``timeout`` is in seconds. Raises Refused or Unavailable.
        """
        token = self._current_token()
        try:
            return self._send(method, path, body, token, timeout)
        except Refused as refused:
            if refused.status != 401 or self._credentials is None:
                raise
        return self._send(method, path, body, self._current_token(rejected=token), timeout)

    def leave(self) -> None:
        """Closes this thread's connection."""
        connection: Optional[http.client.HTTPConnection] = getattr(self._threads, "connection", None)
        if connection is not None:
            connection.close()

    def _current_token(self, rejected: Optional[str] = None) -> str:
        with self._signing_in:
            now = time.monotonic()
            usable = self._token is not None and self._token != rejected
            if self._token is not None and usable and now < self._renew_at:
                return self._token
            try:
                tokens = self._send("POST", "/agents/auth/token", encode(self._credentials), None, REQUEST_SECONDS)
            except Unavailable:
                if self._token is not None and usable and now < self._expires_at:
                    return self._token
                raise
            lifetime = float(tokens["expires_in"])
            self._expires_at = now + lifetime
            self._renew_at = now + lifetime - min(_RENEWAL_SECONDS, lifetime / 2)
            self._token = str(tokens["access_token"])
            return self._token

    def _send(
        self, method: str, path: str, body: Optional[bytes], token: Optional[str], timeout: float
    ) -> Dict[str, Any]:
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        asked = f"{method} {path.partition('?')[0]}"
        status, retry_after, answer = self._exchange(method, self._path + path, body, headers, timeout, asked)
        if status == 429 or status == 408 or status >= 500:
            raise Unavailable(f"{asked}: {answer.get('message') or f'answered with {status}'}", retry_after)
        if status >= 300:
            raise Refused(asked, status, answer)
        if not answer:
            raise Unavailable(f"{asked}: the answer is not of the service; check base_url")
        return answer

    def _exchange(
        self, method: str, path: str, body: Optional[bytes], headers: Dict[str, str], timeout: float, asked: str
    ) -> Tuple[int, Optional[float], Dict[str, Any]]:
        while True:
            connection, is_reused = self._connection(timeout)
            try:
                connection.request(method, path, body, headers)
                response = connection.getresponse()
                answer = _json_object(response.read())
                return response.status, _seconds(response.getheader("Retry-After")), answer
            except (OSError, http.client.HTTPException) as error:
                self._threads.connection = None
                connection.close()
                # The service closes idle connections; that says nothing about a new one.
                is_stale = isinstance(error, (ConnectionError, http.client.RemoteDisconnected))
                if not (is_reused and is_stale):
                    raise Unavailable(f"{asked}: {error or type(error).__name__}") from error

    def _connection(self, timeout: float) -> Tuple[http.client.HTTPConnection, bool]:
        """Returns this thread's connection, and whether it has been used before."""
        connection: Optional[http.client.HTTPConnection] = getattr(self._threads, "connection", None)
        if connection is not None and connection.sock is not None:
            connection.sock.settimeout(timeout)
            return connection, True
        kind = http.client.HTTPSConnection if self._scheme == "https" else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=timeout)
        self._threads.connection = connection
        return connection, False


def _json_object(text: bytes) -> Dict[str, Any]:
    """Returns an answer's object; an empty one for an answer that is not the service's."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return cast(Dict[str, Any], value) if isinstance(value, dict) else {}


def _seconds(retry_after: Optional[str]) -> Optional[float]:
    return float(retry_after) if retry_after is not None and retry_after.isdigit() else None
