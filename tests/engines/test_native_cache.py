"""Machine code on disk: found again by other processes, private, bounded, and looked at."""

import dataclasses
import errno
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import lineara
from lineara.__main__ import main
from lineara.engines import ENGINES, run
from lineara.engines.native import cache, emitted, machine_code
from lineara.engines.native.cache import DiskCache, Limits, disk_cache
from lineara.engines.native.machine_code import compiler
from lineara.errors import OutOfBounds
from lineara.linear_a.parse import parse

pytest.importorskip("llvmlite")
posix = pytest.mark.skipif(os.name == "nt", reason="modes and owners are those of POSIX")
KEY, OTHER = "a" * 64, "b" * 64
ANOTHER = "LINEARA_CACHE_DIR can name another place"


def total(x):
    y = 0.0
    for i in range(x.shape[0]):
        y = y + np.exp(x[i]) * np.sin(x[i])
    return y


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty cache."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    return tmp_path / cache.NAME


@pytest.fixture
def compiled(monkeypatch):
    """The texts that LLVM makes code of."""
    texts = []
    here = compiler()
    make = type(here).object_code

    def object_code(self, text, leaves):
        texts.append(text)
        return make(self, text, leaves)

    monkeypatch.setattr(type(here), "object_code", object_code)
    return texts


def value(factor=2.0):
    """The value of a new program, by machine code."""
    program = parse(f"def f(x: f64;) -> (f64;) = let k: f64 = {factor} in k * x")
    return run(program, "f", 3.0, engine="native").results[0]


def entries(place):
    return sorted(place.iterdir()) if place.exists() else []


# --- what is found again --------------------------------------------------------------------------


def test_a_text_is_compiled_once(place, compiled):
    assert value() == value() == 6.0
    assert len(compiled) == len(entries(place)) == 1
    assert value(5.0) == 15.0
    assert len(compiled) == len(entries(place)) == 2


SCRIPT = """
import sys
import numpy as np
import lineara
from lineara.engines.native import emitted
from lineara.engines.native.machine_code import Compiler
from test_native_cache import total

make, lower, texts, programs = Compiler.object_code, emitted.lowered, [], []
Compiler.object_code = lambda self, text, leaves: (texts.append(text), make(self, text, leaves))[1]
emitted.lowered = lambda *given: (programs.append(given), lower(*given))[1]
x = np.linspace(0.0, 1.0, 7)
g = lineara.jit(lineara.grad(total), engine="native")(x)
whole = [t for t in texts if "@run" in t]  # and not one of exp, for all programs
print(len(whole), len(programs), g.tobytes().hex())
"""


def test_another_process_finds_it_with_all_its_addresses(place):
    """The gradient calls NumPy's loops, and their addresses differ from process to process."""
    said = []
    for seed in ("1", "2"):
        env = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        ran = subprocess.run(
            [sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=env
        )
        assert ran.returncode == 0, ran.stderr
        said.append(ran.stdout.split())
    (*first, g), (*second, h) = said
    assert (first, second) == (["1", "1"], ["0", "0"])  # texts for LLVM, emitted programs
    assert g == h


def test_the_key_names_the_processor_the_versions_and_the_sources(monkeypatch):
    here = compiler()
    key = here.key("text", 1)
    assert here.key("text", 1) == key
    assert here.key("other text", 1) != key
    loop = "again:\n  br label %again\n"
    assert here.key(loop, 1) != here.key(loop, 5_000)  # LLVM does less to it
    for i in range(len(here.versions)):
        other = (*here.versions[:i], "another", *here.versions[i + 1 :])
        with monkeypatch.context() as m:
            m.setattr(here, "versions", other)
            assert here.key("text", 1) != key
    for name in ("sources", "np.__version__", "sys.version"):
        with monkeypatch.context() as m:
            new = (lambda: "another") if name == "sources" else "another"
            m.setattr(f"lineara.engines.native.machine_code.{name}", new)
            assert here.key("text", 1) != key


@pytest.fixture
def lowerings(monkeypatch, pytestconfig):
    """The definitions that are emitted."""
    if pytestconfig.option.bounds:
        pytest.skip("code that looks at its places is not kept on disk")
    names = []
    make = emitted.lowered

    def lowered(program, name, *choices):
        names.append(name)
        return make(program, name, *choices)

    monkeypatch.setattr(emitted, "lowered", lowered)
    return names


def test_a_program_that_is_known_is_not_emitted(place, compiled, lowerings):
    assert value() == value() == 6.0
    assert len(compiled) == len(lowerings) == 1


SORTED = """
def f(x: f64[4], i: i64;) -> (i64[4], i64;) =
  let y: i64[4] = argsort[axis=0](x) in let z: i64 = index[at=(i,)](y) in (y, z;)
"""


def test_what_calls_back_is_emitted_when_it_first_does(place, compiled, lowerings):
    def ran(i):
        program = parse(SORTED)
        native = next(e for e in ENGINES if e.name == "native")
        assert native.takes(program, "f") is None
        before = len(lowerings)
        results = [run(program, "f", -np.arange(4.0), i, engine="native").results for _ in range(2)]
        assert len(lowerings) <= before + 1
        return results[1]

    def shown(results):
        return [np.asarray(y).tolist() for y in results]

    assert shown(ran(1)) == shown(ran(1)) == [[3, 2, 1, 0], 2]
    assert (len(compiled), len(lowerings)) == (1, 2)
    with pytest.raises(OutOfBounds, match="index 9 is out of bounds"):
        ran(9)


def test_a_refusal_is_known_too(place, lowerings):
    program = "def down(x: [f64 | <>];) -> ([f64 | <>];) = x"
    native = next(e for e in ENGINES if e.name == "native")
    said = {native.takes(parse(program), "down") for _ in range(3)}
    assert said == {"down is not lowered: a value of the type [f64 | <>] goes in or out"}
    assert lowerings == ["down"]


def test_a_program_with_more_than_plain_data_has_no_key(place, compiled):
    def told(x):
        print(x)
        return x * x

    for _ in range(2):
        f = lineara.jit(told, engine="native")
        f(3.0)
        staged = f.program(3.0)
        assert emitted.key_of(staged.program, (staged.name, True, False), compiler()) == ""
    assert len(compiled) == 1  # what LLVM makes of the text is known


def test_the_key_of_a_program_names_all_that_it_is_made_of(monkeypatch, lowerings):
    def key(text=LINE, choices=("f", True, False)):
        return emitted.key_of(parse(text), choices, compiler())

    keys = [
        key(), key(LINE.replace("2.0", "2.5")), key(LINE.replace("x * y", "y * x")),
        key(choices=("f", False, False)), key(choices=("f", True, True)),
    ]  # fmt: skip
    for name in ("library", "np.__version__", "sys.version"):
        with monkeypatch.context() as m:
            where = emitted if name == "library" else machine_code
            new = (lambda: "another") if name == "library" else "another"
            m.setattr(f"{where.__name__}.{name}", new)
            keys.append(key())
    assert len({*keys}) == len(keys)
    assert key() == keys[0]


LINE = "def f(x: f64;) -> (f64;) = let y: f64 = 2.0 in x * y"


def test_stored_code_that_llvm_refuses_is_compiled_again(place, compiled, lowerings):
    first, again, third = [parse(LINE) for _ in range(3)]
    run(first, "f", 3.0, engine="native")
    (entry,) = entries(place)
    kept = disk_cache()
    stored = pickle.loads(kept.get(entry.name))
    kept.put(entry.name, pickle.dumps(dataclasses.replace(stored, machine_code=b"no code")))
    for program in (again, third):
        assert run(program, "f", 3.0, engine="native").results == (6.0,)
        (kernel,), (code,) = [program.noted[k].values() for k in ("native", "native code")]
        assert kernel.code is code
    assert len(compiled) == len(lowerings) == 2


# --- entries that are not what they were ----------------------------------------------------------


@pytest.mark.parametrize(
    "spoil",
    [
        lambda raw: b"",
        lambda raw: raw[: len(raw) // 2],
        lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]),
        lambda raw: bytes([raw[0] ^ 1]) + raw[1:],
        lambda raw: raw + b"more",
    ],
    ids=["empty", "cut off", "its last bit", "its first bit", "longer"],
)
def test_an_entry_that_is_not_whole_is_compiled_again(place, compiled, spoil):
    value()
    (entry,) = entries(place)
    whole = entry.read_bytes()
    entry.write_bytes(spoil(whole))
    assert value() == 6.0
    assert len(compiled) == 2
    assert entry.read_bytes() == whole


def test_an_entry_under_the_name_of_another_is_compiled_again(place, compiled):
    value()
    (entry,) = entries(place)
    value(5.0)
    (other,) = [e for e in entries(place) if e != entry]
    entry.write_bytes(other.read_bytes())
    assert value() == 6.0
    assert len(compiled) == 3


def test_whole_entries_that_are_no_code_are_compiled_again(place, compiled):
    value()
    (entry,) = entries(place)
    disk_cache().put(entry.name, b"no code")
    assert value() == 6.0
    assert len(compiled) == 2


@posix
def test_an_entry_that_is_a_link_or_that_others_may_write_is_not_read(place, tmp_path):
    kept = disk_cache()
    kept.put(KEY, b"code")
    assert kept.get(KEY) == b"code"
    (place / KEY).chmod(0o622)
    assert kept.get(KEY) is None
    (place / KEY).chmod(0o600)
    (place / KEY).rename(tmp_path / "elsewhere")
    (place / KEY).symlink_to(tmp_path / "elsewhere")
    assert kept.get(KEY) is None


# --- how much is kept -----------------------------------------------------------------------------


def aged(place, key, seconds):
    os.utime(place / key, (seconds, seconds))


def test_what_was_not_used_for_longest_goes_first(place):
    kept = DiskCache(disk_cache().directory, limits=Limits(10_000, 3))
    for i, key in enumerate("abc"):
        kept.put(key * 64, b"code")
        aged(place, key * 64, 1_000 + i)
    assert kept.get("a" * 64) == b"code"  # and is the newest now
    kept.put("d" * 64, b"code")
    assert [e.name[0] for e in entries(place)] == ["a", "c", "d"]


def test_bytes_are_bounded(place):
    kept = DiskCache(disk_cache().directory, limits=Limits(1_000, 100))
    for i, key in enumerate("abc"):
        kept.put(key * 64, bytes(400))
        aged(place, key * 64, 1_000 + i)
    assert [e.name[0] for e in entries(place)] == ["b", "c"]
    kept.put("d" * 64, bytes(5_000))  # the newest stays, whatever its size
    assert [e.name[0] for e in entries(place)] == ["d"]


def test_one_in_some_entries_looks_for_room_for_those_to_come(place, monkeypatch):
    kept = DiskCache(disk_cache().directory, limits=Limits(10**9, 640))
    assert kept.limits.unlooked == 10
    looks = []
    own = DiskCache._leave_room
    monkeypatch.setattr(DiskCache, "_leave_room", lambda self, key: looks.append(own(self, key)))
    sizes = []
    for i in range(1_500):
        kept.put(f"{i:064x}", b"code")
        sizes.append(len(os.listdir(place)))
    assert 100 < len(looks) < 200
    assert 600 < sizes[-1] <= max(sizes) < 640 + 10 * kept.limits.unlooked


def test_what_was_never_put_in_place_is_removed(place):
    kept = DiskCache(disk_cache().directory, limits=Limits(10_000, 3))
    kept.put(KEY, b"code")
    for name, age in ((".fresh", 0.0), (".old", 2 * cache.ABANDONED)):
        (place / name).write_bytes(b"co")
        now = (place / KEY).stat().st_mtime
        aged(place, name, now - age)
    kept.put(OTHER, b"code")
    assert [e.name[:2] for e in entries(place)] == [".f", "aa", "bb"]


# --- many at a time -------------------------------------------------------------------------------


WRITER = """
import runpy
import sys

disk_cache = runpy.run_path(sys.argv[1])["disk_cache"]  # nothing else of the library loads
kept = disk_cache()
for i in range(200):
    key = f"{i % 5:064d}"
    code = kept.get(key)
    assert code is None or code == key.encode() * 500, "an entry is whole, or there is none"
    kept.put(key, key.encode() * 500)
    if i % 50 == 49:
        kept.clear()
"""


def test_processes_write_read_and_remove_the_same_entries_at_a_time(place):
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, cache.__file__], stderr=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    assert [(p.communicate()[1], p.returncode) for p in started] == [("", 0)] * 3
    assert entries(place) == []


def test_threads_compile_at_a_time(place):
    results = []
    threads = [
        threading.Thread(target=lambda k=k: results.append((k, value(float(k))))) for k in range(8)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(results) == [(k, 3.0 * k) for k in range(8)]
    assert len(entries(place)) == 8


# --- where it is ----------------------------------------------------------------------------------


@posix
def test_the_directory_is_the_users_alone(place):
    value()
    assert place.stat().st_mode & 0o777 == 0o700
    assert entries(place)[0].stat().st_mode & 0o777 == 0o600


@posix
@pytest.mark.parametrize("mode", [0o755, 0o770, 0o777])
def test_a_directory_that_others_may_enter_is_not_used(place, compiled, mode):
    place.mkdir()
    place.chmod(mode)
    assert value() == value() == 6.0
    assert len(compiled) == 2
    assert entries(place) == []
    assert disk_cache().why == (
        f"{place} may be entered by others (mode {mode:o}); `chmod 700 {place}` mends that, "
        "or LINEARA_CACHE_DIR can name another place"
    )


@posix
def test_a_directory_that_is_a_link_is_not_used(place, tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    place.symlink_to(tmp_path / "real")
    assert value() == 6.0
    assert entries(tmp_path / "real") == []
    assert disk_cache().why == f"{place} is a link or a special file; {ANOTHER}"


@posix
def test_a_directory_of_another_user_is_not_used(place, monkeypatch):
    place.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: place.stat().st_uid + 1)
    assert value() == 6.0
    assert entries(place) == []
    assert disk_cache().why == f"{place} belongs to another user; {ANOTHER}"


@posix
def test_a_directory_that_its_owner_cannot_read_is_not_used(place, monkeypatch, capsys):
    place.mkdir(mode=0o700)
    monkeypatch.setattr(os, "access", lambda path, mode: path != place)  # root may read all
    assert value() == 6.0
    assert entries(place) == []
    said = f"{place} cannot be read by its owner (mode 700); `chmod 700 {place}` mends that, or "
    assert disk_cache().why == f"{said}{ANOTHER}"
    assert main(["cache", "info"]) == 0
    assert main(["cache", "clear"]) == 1  # what lies there stays
    assert capsys.readouterr().out == f"compiled code is not kept on disk: {said}{ANOTHER}\n" * 2


def refusing(number):
    def raises(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    return raises


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC, errno.EACCES])
@pytest.mark.parametrize("step", ["tempfile.mkstemp", "os.replace", "os.fdopen"])
def test_a_disk_that_is_full_or_may_not_be_written_keeps_nothing(
    place, compiled, monkeypatch, number, step
):
    monkeypatch.setattr(cache, "os", type("Os", (), vars(os).copy()))
    monkeypatch.setattr(f"lineara.engines.native.cache.{step}", refusing(number))
    assert value() == value() == 6.0
    assert len(compiled) == 2
    assert entries(place) == []


def test_a_directory_that_cannot_be_made_is_not_used(tmp_path, compiled, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file" / "below"))
    assert value() == value() == 6.0
    assert len(compiled) == 2
    assert disk_cache().directory is None
    assert disk_cache().why.endswith(ANOTHER)


@pytest.mark.parametrize("off", ["off", "OFF", "Off"])
def test_off_keeps_nothing(compiled, monkeypatch, tmp_path, off):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(cache.VARIABLE, off)
    assert value() == value() == 6.0
    assert len(compiled) == 2
    assert entries(tmp_path) == []


def test_a_relative_directory_stays_where_it_is(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    name = f"kept-{tmp_path.name}"
    monkeypatch.setenv(cache.VARIABLE, name)
    value()
    monkeypatch.chdir("elsewhere")
    value(5.0)
    assert entries(tmp_path / "elsewhere") == []
    assert len(entries(tmp_path / name / cache.NAME)) == 2


def test_an_empty_value_is_as_none(tmp_path):
    home = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    assert disk_cache(home | {cache.VARIABLE: ""}) == disk_cache(home)


@posix
@pytest.mark.parametrize("spoil", [lambda e: os.mkfifo(e, 0o600), os.mkdir])
def test_what_is_no_file_in_place_of_an_entry_is_not_read(place, compiled, capsys, spoil):
    value()
    (entry,) = entries(place)
    entry.unlink()
    spoil(entry)
    kept = disk_cache()
    assert kept.get(entry.name) is None
    assert kept.files() == []
    assert value() == 6.0
    assert len(compiled) == 2


@posix
@pytest.mark.parametrize("home", [{}, {"HOME": ""}, {"HOME": "relative"}, {"HOME": "/nowhere"}])
def test_without_a_home_nothing_is_kept_and_no_home_is_made(home):
    kept = disk_cache(home)
    assert kept.directory is None
    assert kept.why == "this user has no home directory; LINEARA_CACHE_DIR can name one"
    assert not Path("/nowhere").exists()


@posix
def test_the_systems_place_is_taken(tmp_path):
    home = {"HOME": str(tmp_path)}
    assert disk_cache(home).directory.is_relative_to(tmp_path)
    assert disk_cache(home).directory.parts[-2:] == ("lineara", cache.NAME)
    stated = home | {"XDG_CACHE_HOME": str(tmp_path / "x")}
    assert disk_cache(stated).directory == tmp_path / "x" / "lineara" / cache.NAME
    assert disk_cache(home | {"XDG_CACHE_HOME": "x"}) == disk_cache(home)  # it has to be absolute


# --- the command ----------------------------------------------------------------------------------


def test_the_command_tells_and_clears(place, compiled, capsys):
    value()
    value(5.0)
    assert main(["cache", "info"]) == 0
    nbytes = sum([e.stat().st_size for e in entries(place)])
    assert capsys.readouterr().out == (
        f"{place}: 2 files of at most 2,000, {nbytes:,} of at most 134,217,728 bytes\n"
    )
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"{place}: 2 files removed\n"
    assert entries(place) == []
    assert value() == 6.0
    assert len(compiled) == 3


@pytest.mark.parametrize("what", ["info", "clear"])
def test_the_command_makes_no_directory(place, capsys, what):
    assert main(["cache", what]) == 0
    assert capsys.readouterr().out.startswith(f"{place}: 0 files")
    assert not place.exists()


def test_the_command_tells_what_it_cannot_remove_and_goes_on(place, capsys, monkeypatch):
    value()
    value(5.0)
    names = ["z", ".y", "0"]
    for name in names:
        (place / name).mkdir()
    assert main(["cache", "clear"]) == 1
    told = capsys.readouterr()
    assert told.out == f"{place}: 2 files removed\n"
    assert sorted(line.partition(" stays: ")[0] for line in told.err.splitlines()) == sorted(
        [str(place / name) for name in names]
    )
    assert entries(place) == sorted([place / name for name in names])


def test_the_command_says_why_nothing_is_kept(monkeypatch, capsys):
    monkeypatch.setenv(cache.VARIABLE, cache.OFF)
    assert main(["cache", "clear"]) == 0
    said = "compiled code is not kept on disk: LINEARA_CACHE_DIR is 'off'\n"
    assert capsys.readouterr().out == said


def test_the_tests_do_not_write_into_the_users_cache():
    assert disk_cache().directory.is_relative_to(tempfile.gettempdir())
    assert lineara.jit(total, engine="native")(np.ones(2)) == total(np.ones(2))
    assert disk_cache().entries()


def test_threads_that_make_shared_code_at_once_get_one(place, monkeypatch):
    """Code that the others made is freed, so nobody may hold an address in it."""
    here, meet = compiler(), threading.Barrier(4)
    make = type(here).loaded

    def at_once(self, *given):
        meet.wait(60)
        return make(self, *given)

    monkeypatch.setattr(type(here), "loaded", at_once)
    monkeypatch.setattr(here, "kept", {})
    text = "define i64 @one() {\n  ret i64 1\n}"
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: here.shared(text, 1, {}), range(4)))
    assert len({id(library) for library in made}) == 1


FIRST_CALLS = """
import threading
import numpy as np
import lineara
from lineara.engines.native.machine_code import Compiler

make, made = Compiler.__init__, []
Compiler.__init__ = lambda self: (made.append(self), make(self))[1]

def total(x):
    s = 0.0
    for k in range(50):
        s += np.exp(x * k / 50)
    return s

f, started = lineara.jit(lineara.grad(total)), threading.Barrier(4)

def calls():
    started.wait()
    for _ in range(500):
        f(1.0)

threads = [threading.Thread(target=calls) for _ in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(len(made), f(1.0) == lineara.grad(total)(1.0))
"""


def test_the_first_calls_may_be_of_several_threads(place):
    for _ in range(3):
        ran = subprocess.run([sys.executable, "-c", FIRST_CALLS], capture_output=True, text=True)
        assert (ran.returncode, ran.stdout) == (0, "1 True\n"), ran.stderr
