"""Exception lines alone, what opens a traceback, the frames above a lone exception line, and error.json."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdoctor.sources.logs.lines import Line
from memdoctor.sources.logs.tracebacks import bare_name, from_json_text, from_tail, lone_exception, starts


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried", ("torch.cuda.OutOfMemoryError", "CUDA out of memory. Tried")),
        ("AssertionError", ("AssertionError", "")),
        ("KeyError: 'x'", ("KeyError", "'x'")),
        ("RuntimeError: ", ("RuntimeError", "")),
        ("[rank1] RuntimeError: gone", ("RuntimeError", "gone")),
        ("[rank12]: ValueError: x", ("ValueError", "x")),
        ("  RuntimeError: in a box", ("RuntimeError", "in a box")),
        ("sqlite3.OperationalError: database is locked", ("sqlite3.OperationalError", "database is locked")),
        ("sqlite3.Error: x", ("sqlite3.Error", "x")),
        ("socket.gaierror: [Errno -2] Name or service not known", ("socket.gaierror", "[Errno -2] Name or service not known")),
        (
            "filelock._error.Timeout: The file lock '/x' could not be acquired.",
            ("filelock._error.Timeout", "The file lock '/x' could not be acquired."),
        ),
        ("KeyboardInterrupt", ("KeyboardInterrupt", "")),
        ("SystemExit: 1", ("SystemExit", "1")),
        ("Exception: Current loss scale already at minimum", ("Exception", "Current loss scale already at minimum")),
        ("ray.exceptions.RayTaskError(ValueError): ray::f() (pid=1)", ("ray.exceptions.RayTaskError(ValueError)", "ray::f() (pid=1)")),
        (
            "triton.runtime.errors.OutOfResources: out of resource: shared memory",
            ("triton.runtime.errors.OutOfResources", "out of resource: shared memory"),
        ),
        ("__main__.main.<locals>.StepError: x", ("__main__.main.<locals>.StepError", "x")),
        ("FutureWarning: x is deprecated", None),
        ("UserWarning: y", None),
        ("DeprecationWarning", None),
        ("/a/b.py:3: UserWarning: y", None),
        ("Error: something", None),
        ("ERROR: something", None),
        ("Note: see above", None),
        ("INFO: started", None),
        ("ncclSystemError: System call (e.g. socket, malloc) or external library call failed", None),
        ("ncclUnhandledCudaError: Call to CUDA function failed.", None),
        ("cudaErrorMemoryAllocation: out of memory", None),
        ("The training stopped with RuntimeError: x", None),
        ("    RuntimeError: in source", None),
        ("torch.distributed.run: started", None),
        ("RuntimeError:no space", None),
        ("Last error:", None),
        ("", None),
    ],
)
def test_lone_exception(text: str, found: tuple[str, str] | None):
    assert lone_exception(text) == found


@pytest.mark.parametrize(
    ("text", "opens"),
    [
        ("Traceback (most recent call last):", True),
        ("Original Traceback (most recent call last):", True),
        ("Traceback (most recent call last): (RANK 3)", True),
        ("  traceback : Traceback (most recent call last):", True),
        ("  + Exception Group Traceback (most recent call last):", True),
        ("worker 3 | Traceback (most recent call last):", True),
        ("╭──────── Traceback (most recent call last) ─────────╮", True),
        ("???????? Traceback (most recent call last) ?????????", True),
        ("+------- Traceback (most recent call last) ---------+", True),
        ("ValueError                                Traceback (most recent call last)", True),
        ("Fatal Python error: Bus error", True),
        ("Traceback (most recent call last): is what you see", False),
        ("see the Traceback (most recent call last) above", False),
        ('print("Traceback (most recent call last)")', False),
        ('{"py_callstack": "Traceback (most recent call last):\\n  File', False),
        ("traceback : Signal 9 (SIGKILL) received by PID 9", False),
        ("iteration 3", False),
    ],
)
def test_starts(text: str, opens: bool):
    assert starts(text) is opens


def test_bare_name():
    assert [bare_name(name) for name in ("torch.OutOfMemoryError", "KeyError", "ray.exceptions.RayTaskError(a.ValueError)")] == [
        "OutOfMemoryError",
        "KeyError",
        "RayTaskError",
    ]


def tail(*texts: str) -> list[Line]:
    return [Line(text=text) for text in reversed(texts)]


def test_frames_of_a_log_that_is_cut_at_its_top():
    frames = from_tail(
        tail(
            "    return self.run()",
            '  File "/a.py", line 3, in run',
            '  File "/a.py", line 3, in run',
            "    step()",
            "           ^^^^",
            "",
            '  File "/b.py", line 9, in step',
            "    assert ok",
            "",
            "iteration 7",
        )
    )
    assert [(frame.file, frame.lineno, frame.function, frame.source) for frame in frames] == [
        ("/a.py", 3, "run", "step()"),
        ("/b.py", 9, "step", "assert ok"),
    ]


def test_frames_of_another_exception_are_left_alone():
    assert from_tail(tail('  File "/a.py", line 3, in run', "    step()", "ValueError: x", "")) == ()
    assert from_tail(tail('  File "/a.py", line 3, in run', "    step()", "one", "two", "three", "four")) == ()
    assert from_tail([]) == ()


def test_frames_of_a_box_without_its_top():
    frames = from_tail(
        tail("│ /a.py:12 in main        │", "│   11                    │", "│ ❱ 12 │   go()            │", "╰─────────────────────────╯")
    )
    assert [(frame.file, frame.lineno, frame.function, frame.source) for frame in frames] == [("/a.py", 12, "main", "go()")]


CALLSTACK = 'Traceback (most recent call last):\n  File "/job/train.py", line 10, in main\n    raise OSError(28, "full")\nOSError: [Errno 28] full\n'


def test_error_file():
    text = json.dumps(
        {"message": {"message": "OSError: [Errno 28] full", "extraInfo": {"py_callstack": CALLSTACK, "timestamp": "1700000000"}}}
    )
    for whole in (text, text[:-20], f"error file: {text}"):
        (raised,) = from_json_text(whole)
        assert (raised.type, raised.message, raised.complete, raised.line) == ("OSError", "[Errno 28] full", True, 1)
        assert raised.frames[0].file == "/job/train.py"


def test_error_file_without_traceback():
    (raised,) = from_json_text('{"message": "RuntimeError: gone"}')
    assert (raised.type, raised.message, raised.frames, raised.complete) == ("RuntimeError", "gone", (), False)
    assert from_json_text('{"message": "the job went away"}') == []
    assert from_json_text("[" * 100_000) == []
    assert from_json_text('{"message": {"message": 3, "extraInfo": []}}') == []


@given(st.text(max_size=300))
def test_nothing_raises(text: str):
    lone_exception(text)
    starts(text)
    from_tail(tail(*text.split("\n")))
    for whole in (text, '{"message": ' + text, json.dumps({"message": {"message": text, "extraInfo": {"py_callstack": text}}})):
        assert len(from_json_text(whole)) <= len(whole)
