"""JSON as the service accepts it."""

from __future__ import annotations

import json
from typing import Any


def encode(value: Any) -> bytes:
    """Returns the JSON of a value. Raises TypeError, ValueError or RecursionError if it has none."""
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def well_formed(text: str, limit: int) -> str:
    """Cuts a string after so many characters, and replaces what UTF-8 cannot represent."""
    return text[:limit].encode("utf-8", "replace").decode("utf-8")
