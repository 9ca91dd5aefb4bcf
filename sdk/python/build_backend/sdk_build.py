"""Builds the package without other packages (PEP 517, PEP 660)."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import re
import tarfile
import zipfile
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

_ROOT = Path(__file__).resolve().parent.parent
_PACKAGE = "task_scheduling_worker"
_NAME = "task-scheduling-worker"
#: The earliest time that a zip file can hold: the same sources make the same archive.
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)
_TAG = "py3-none-any"

Config = Optional[Mapping[str, Any]]
Files = List[Tuple[str, bytes]]


def build_wheel(wheel_directory: str, config_settings: Config = None, metadata_directory: Optional[str] = None) -> str:
    """Writes the wheel and returns its file name."""
    files = [(path, (_ROOT / path).read_bytes()) for path in _package_files()]
    return _write_wheel(wheel_directory, files)


def build_editable(
    wheel_directory: str, config_settings: Config = None, metadata_directory: Optional[str] = None
) -> str:
    """Writes a wheel that refers to this folder and returns its file name."""
    return _write_wheel(wheel_directory, [(f"__editable__.{_PACKAGE}.pth", f"{_ROOT}\n".encode())])


def build_sdist(sdist_directory: str, config_settings: Config = None) -> str:
    """Writes the source archive and returns its file name."""
    top = f"{_PACKAGE}-{_version()}"
    own = ["pyproject.toml", "README.md", "LICENSE", "build_backend/sdk_build.py", *_package_files()]
    own += sorted(path.relative_to(_ROOT).as_posix() for path in (_ROOT / "tests").glob("*.py"))
    files = [(path, (_ROOT / path).read_bytes()) for path in own]
    files.append(("PKG-INFO", _metadata()))
    name = f"{top}.tar.gz"
    with open(Path(sdist_directory) / name, "wb") as file:
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
            with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
                for path, content in files:
                    member = tarfile.TarInfo(f"{top}/{path}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
    return name


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Config = None) -> str:
    """Writes the metadata folder and returns its name."""
    folder = Path(metadata_directory) / _dist_info()
    folder.mkdir()
    for path, content in _dist_info_files():
        target = Path(metadata_directory) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return folder.name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def _write_wheel(wheel_directory: str, files: Files) -> str:
    files = files + _dist_info_files()
    name = f"{_PACKAGE}-{_version()}-{_TAG}.whl"
    record = f"{_dist_info()}/RECORD"
    lines = [f"{path},sha256={_digest(content)},{len(content)}\n" for path, content in files]
    lines.append(f"{record},,\n")
    with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in [*files, (record, "".join(lines).encode())]:
            member = zipfile.ZipInfo(path, _ZIP_TIME)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = 0o100644 << 16
            wheel.writestr(member, content)
    return name


def _package_files() -> List[str]:
    files = (_ROOT / _PACKAGE).iterdir()
    return sorted(file.relative_to(_ROOT).as_posix() for file in files if file.suffix in (".py", ".typed"))


def _dist_info() -> str:
    return f"{_PACKAGE}-{_version()}.dist-info"


def _dist_info_files() -> Files:
    folder = _dist_info()
    wheel = f"Wheel-Version: 1.0\nGenerator: sdk_build\nRoot-Is-Purelib: true\nTag: {_TAG}\n"
    return [
        (f"{folder}/METADATA", _metadata()),
        (f"{folder}/WHEEL", wheel.encode()),
        (f"{folder}/LICENSE", (_ROOT / "LICENSE").read_bytes()),
    ]


def _metadata() -> bytes:
    fields: Dict[str, str] = {
        "Metadata-Version": "2.1",
        "Name": _NAME,
        "Version": _version(),
        "Summary": "Runs your own Python functions as steps of the task scheduling service",
        "License": "Apache-2.0",
        "Classifier": "Typing :: Typed",
        "Requires-Python": ">=3.9",
        "Description-Content-Type": "text/markdown",
    }
    head = "".join(f"{field}: {value}\n" for field, value in fields.items())
    return f"{head}\n{(_ROOT / 'README.md').read_text(encoding='utf-8')}".encode()


def _version() -> str:
    source = (_ROOT / _PACKAGE / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', source, re.MULTILINE)
    if found is None:
        raise ValueError(f"{_PACKAGE}/__init__.py has no __version__")
    return found.group(1)


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
