"""Where an exception's message ends.

Nothing in a log says so. A message goes on over lines that are known to be part of one (hints of CUDA, C++ frames, NCCL's last error,
indented lines), and over a few others: the fewer, the more writers share the stream. It ends at a line that looks like a log record,
at the next exception, at a dedent and, but for known texts, at an empty line.
"""

from __future__ import annotations

import re

from memdoctor.lazy import lazy
from memdoctor.sources.logs.tracebacks.raised import Draft
from memdoctor.sources.logs.tracebacks.shapes import bare_name, lone_exception
from memdoctor.sources.logs.tracebacks.wrapping import Wrapping

MAX_LINES = 40  # lines of a message, C++ frames apart
MAX_NATIVE = 150  # C++ frames
MAX_EMPTY = 3  # empty lines in a row that may stand within one traceback
UNSURE_ALONE, UNSURE_SHARED = 12, 3  # lines that nothing marks as message: in a stream of one process, in one that may be shared
MIN_WORDS = 5  # of a sentence that is taken for message in a shared stream; what others print there is shorter or no sentence

_NATIVE = lazy(
    r"^\s*(?:frame #\d+: |#\d+ |Exception raised from |<omitting python frames>|C\+\+ CapturedTraceback|terminate called recursively|Caffe2 )"
)
_SURE = lazy(
    r"^(?:nccl\w*:|Last error:|Cuda failure |socket\w*[ :]|NET/|"
    r"(?:CUDA|HIP|XPU) kernel errors might|For debugging consider passing|Compile with `?TORCH_|Device-side assert|Search for `|"
    r"Currently allocated|Requested|Device limit|Free \(according|PyTorch limit|"
    r"tensor at position|saved metadata|recomputed metadata|Parameter indices|Parameters? which did not|"
    r"While executing|Original traceback|from user code|Set TORCH|You can suppress|\[\d{1,5}/\d{1,5}\]|FAILED: |ninja: |collect2: |"
    r"\S{1,300}: (?:fatal )?error: |compilation terminated|Checkout your internet|Please (?:check|make sure|note|pass|set|see|use)|"
    r"Make sure |See |Try |Consider |Note that |If you |You (?:can|may|need|should) |To (?:fix|see|use|enable|avoid) |This (?:is|means|may|error|exception) |"
    r"Error message:|Traceback of|Expected |Got |[})\]]|\.\.\. )"
)
_AFTER_EMPTY = lazy(
    r"^(?:Set TORCH|You can suppress|from user code|Repository Not Found|Entry Not Found|Cannot access gated|Access to model|Invalid username|Please |"
    r"IMPORTANT: |Original error was|Exception raised from |frame #|C\+\+ CapturedTraceback|Last error|The above operation|"
    r"\s+(?:import torch\._dynamo|torch\._dynamo\.config))"
)
_RECORD = lazy(
    r"^(?:[\[(<]?\d{4}[-/]\d\d[-/]\d\d|[\[(]?\d\d:\d\d:\d\d|(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL|NOTE)\b[\s:\]|-]|"
    r"\[[A-Za-z]|\[(?:\d{1,5}|rank\d+)\][: ]|\(\w[\w.]* pid=|[VDIWEF]\d{4} |\S{1,300}\.py:\d+: |\w*Warning: |\S{1,200}:\d+:\d+ \[\d+\] |NCCL |"
    r"(?:srun|slurmstepd|mpirun|prterun|wandb|tcmalloc|bash|sh|ssh|pdsh|torchrun|make|g\+\+)\S{0,40}: |"
    r"Fatal Python error|terminate called|\s+what\(\): |Killed|Terminated|Aborted|Segmentation fault|Bus error|free\(\)|double free|malloc|corrupted|"
    r"Exception ignored|Exception in thread|[=*#+-]{5,}|# |[╭╰─]|"
    r"(?:iter|iteration|step|steps|epoch|loss|lr|rank|batch|train|training|eval|loading|saving|saved|building|using|setting)\b|"
    r"\{'|\w[\w ]{0,30}:? +\d{1,3}%|\s*\d{1,3}%\||MA \d|time \(ms\)|time to |max time|saving checkpoint|\+ |> )",
    re.IGNORECASE,
)
# Messages of several lines that follow no shape: all is believed up to a record.
_OPEN_CLASSES = frozenset(
    "DistBackendError CheckpointError BackendCompilerFailed InternalTorchDynamoError Unsupported CompilationError CalledProcessError CUDAMismatchException".split()
)
_OPEN_TEXT = lazy(r"^(?:Error building extension|Error\(s\) in loading|NCCL error in|Worker failure)")
# Messages that are known to fit on one line.
_CLOSED_TEXT = lazy(r"Tried to allocate|This is typically caused by a remote worker crashing")
_CLOSED_CLASSES = frozenset({"ChildFailedError"})
_VALIDATION = lazy(r"^(\d{1,4}) validation errors? for ")


class Message:
    """Reads the lines after an exception line into ``draft``. ``base``: the traceback's own indentation, in characters.

    ``wrapping``: how the message was wrapped to the width of a console (rich), where it was.
    """

    __slots__ = ("_base", "_draft", "_empty", "_last", "_limit", "_lines", "_native", "_shared", "_unsure", "_wrapping")

    def __init__(self, draft: Draft, base: int, alone: bool, first: str, wrapping: Wrapping | None = None) -> None:
        self._draft, self._base, self._wrapping = draft, base, wrapping
        self._last = first
        self._lines = self._native = self._unsure = self._empty = 0
        self._shared = False  # lines that nothing marks may be another writer's
        self._limit = self._unsure_lines(alone)

    def empty(self) -> bool:
        self._empty += 1
        return self._empty <= MAX_EMPTY

    def feed(self, text: str, number: int) -> bool:
        """Whether ``text`` (not empty) goes on with the message."""
        if text[: self._base].strip():
            return False
        body = text[self._base :]
        if self._wrapping is not None and not self._empty:
            glue = self._wrapping.glue(body, _RECORD.match(body) is not None)
            if glue is not None:
                self._add(body, number, glue)
                return True
        if _NATIVE.match(body):
            self._native += 1
            if self._native > MAX_NATIVE:
                return False
            self._add(body, number, "\n")
            return True
        if self._lines >= MAX_LINES or not self._goes_on(body):
            return False
        self._lines += 1
        self._add(body, number, "\n")
        return True

    def _goes_on(self, body: str) -> bool:
        if self._empty and not (self._last.endswith(":") and not self._draft.message):
            return _AFTER_EMPTY.match(body) is not None
        if _SURE.match(body) or self._last.strip() == "Last error:":  # what follows that is NCCL's last warning, whatever it looks like
            return True
        if _RECORD.match(body):
            return False
        opened = self._last.endswith((":", ",", "(", "[", "{"))
        if lone_exception(body) is not None:
            return opened
        if (body[0] in " \t" and not _RECORD.match(body.lstrip())) or opened:
            return True
        self._unsure += 1
        sentence = not self._shared or (body.endswith((".", "!", "?", ")")) and len(body.split()) >= MIN_WORDS)
        return sentence and self._unsure <= self._limit

    def _unsure_lines(self, alone: bool) -> int:
        message, name = self._draft.message, bare_name(self._draft.type)
        if name in _CLOSED_CLASSES or _CLOSED_TEXT.search(message):
            return 0
        validation = _VALIDATION.match(message)
        if validation is not None:  # pydantic prints each field's name at the margin and indents the rest
            return int(validation[1])
        if name in _OPEN_CLASSES or _OPEN_TEXT.match(message):
            return MAX_LINES
        self._shared = not alone
        return UNSURE_ALONE if alone else UNSURE_SHARED

    def _add(self, body: str, number: int, glue: str) -> None:
        self._empty = 0
        self._last = body
        if self._wrapping is not None:
            self._wrapping.take(body)
        self._draft.add_message(body, number, glue)
