"""The build backend."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import Dict

import task_scheduling_worker

ROOT = Path(__file__).resolve().parent.parent


def wheel_files(wheel: Path) -> Dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


class Builds(unittest.TestCase):
    def folder(self) -> str:
        """An empty folder, removed after the test."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return folder.name

    def build(self, hook: str, root: Path = ROOT) -> Path:
        """Calls a hook as pip does: in a process of its own, from the root of the sources. Returns the archive."""
        folder = self.folder()
        program = f"import sys; sys.path.insert(0, 'build_backend'); import sdk_build; print(sdk_build.{hook}(sys.argv[1]))"
        words = [sys.executable, "-c", program, folder]
        ran = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True)
        return Path(folder) / ran.stdout.strip()

    def test_a_wheel_with_all_modules_and_a_correct_record(self) -> None:
        version = task_scheduling_worker.__version__
        wheel = self.build("build_wheel")
        self.assertEqual(wheel.name, f"task_scheduling_worker-{version}-py3-none-any.whl")
        files = wheel_files(wheel)
        info = f"task_scheduling_worker-{version}.dist-info"
        modules = [path.name for path in (ROOT / "task_scheduling_worker").glob("*.py")]
        expected = [f"task_scheduling_worker/{name}" for name in [*modules, "py.typed"]]
        expected += [f"{info}/{name}" for name in ("METADATA", "WHEEL", "LICENSE", "RECORD")]
        self.assertEqual(sorted(files), sorted(expected))
        record = list(csv.reader(io.StringIO(files[f"{info}/RECORD"].decode())))
        self.assertEqual([row[0] for row in record], list(files))
        for name, digest, size in record[:-1]:
            own = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
            self.assertEqual((digest, size), (f"sha256={own}", str(len(files[name]))))
        self.assertEqual(record[-1], [f"{info}/RECORD", "", ""])
        metadata = Parser().parsestr(files[f"{info}/METADATA"].decode())
        self.assertEqual((metadata["Name"], metadata["Version"]), ("task-scheduling-worker", version))
        self.assertEqual(metadata["Requires-Python"], ">=3.9")
        self.assertEqual(metadata.get_payload(), (ROOT / "README.md").read_text(encoding="utf-8"))

    def test_the_same_wheel_from_the_same_sources(self) -> None:
        self.assertEqual(self.build("build_wheel").read_bytes(), self.build("build_wheel").read_bytes())

    def test_the_same_wheel_from_the_source_archive(self) -> None:
        archive = self.build("build_sdist")
        with tarfile.open(archive) as packed:
            folder = self.folder()
            # Python 3.12 wants a filter, which earlier releases of 3.9 lack.
            packed.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        unpacked = Path(folder) / archive.name[: -len(".tar.gz")]
        self.assertTrue((unpacked / "PKG-INFO").is_file())
        self.assertEqual(self.build("build_wheel", unpacked).read_bytes(), self.build("build_wheel").read_bytes())

    def test_an_editable_wheel_that_refers_to_the_sources(self) -> None:
        files = wheel_files(self.build("build_editable"))
        [(_, path)] = [item for item in files.items() if item[0].endswith(".pth")]
        self.assertEqual(path.decode(), f"{ROOT}\n")

    def test_the_metadata_of_the_wheel_alone(self) -> None:
        folder = self.build("prepare_metadata_for_build_wheel")
        files = wheel_files(self.build("build_wheel"))
        for name in ("METADATA", "WHEEL", "LICENSE"):
            self.assertEqual((folder / name).read_bytes(), files[f"{folder.name}/{name}"])


if __name__ == "__main__":
    unittest.main()
