"""What a line looks like of which no signal tells: the word of an error; and what only speaks of errors: passed tests, documents, counts of none."""

from __future__ import annotations

import re

from memdoctor.lazy import lazy

LOOK = 1_000  # characters of a line that are looked at

# A test that passed, and whose name may well speak of errors: pytest's and unittest's words.
_PASSED = lazy(
    r"(?:::|^test_)\w.{0,300} (?:PASSED|SKIPPED|XFAIL)\b|\b(?:PASSED|SKIPPED|XFAIL) \S{1,300}::|^test\w{0,200} \([\w.]{1,300}\)(?: \.\.\. (?:ok|skipped)\b|$)",
    needs=("PASSED", "SKIPPED", "XFAIL", "test"),
)
# A point of a list in a document, with code in it.
_DOCUMENT = lazy(r"^\s*(?:[-*+•]|\d{1,2}[.)])\s.{0,300}`", needs=("`",))
# A remark behind code in a listing, and a commit in `git log --oneline` (seven digits or a few more; a container's short id has twelve).
_REMARK = lazy(r"^\s*\S.{0,200}[\w)\]}:;,\"']\s{2,}(?:#|//)\s")
_COMMIT = lazy(r"^(?:[*|\\/] ?){0,6}(?=[a-f]{0,9}\d)[0-9a-f]{7,10} (?:\([^)]{1,120}\) )?[A-Za-z]")

# A command that would say it: a script that stands in the log.
_COMMAND = lazy(r"(?:^|[\s;|&({])(?:echo|printf)\s+(?:-[neE]+\s+)?[\"']", needs=("echo", "printf"))
# A count in the tables of `nvidia-smi -q`.
_COUNT = lazy(r"^\s+(?:[A-Z][\w-]+ ){0,4}Errors?\s+: (?:\d+|N/A)\s*$", needs=("Error",))

_WORD = lazy(
    r"(?:\w*(?:Error|Exception|Interrupt)|SystemExit|\bERROR|\berror(?=:)|\bCRITICAL|\bFATAL|\b[Ff]atal|\bFAILED|\b[Ff]ailed|\bAborted|\bpanic|\bExit(?= ?\d))\b"
)
_NONE = lazy(
    r"(?<!rank )(?<!worker )(?<!node )(?<!gpu )(?<!process )(?<!task )(?<!stage )(?<!step )(?<!device )(?<!epoch )"
    r"\b(?:0|no|zero|without)\s+(?:[\w-]+\s+){0,2}(?:and\s+)?(?:errors?|failed|failures?|exceptions?)\b"
    r"|\b(?:errors?|failed|failures?)\b[\"']?\s*[:=]\s*[\"']?(?:0\b(?!\.)|\[\]|\{\}|(?:none|no|false)\b(?! ?\w))"
    r"|^\s*Reason=.{1,200}\[[\w.-]{1,64}@"  # why Slurm took a node out: of the node, not of the job
    r"|\bfailed\b[^:;,()]{0,40}: ?\d+ ?(?:/|of) ?\d+"
    r"|\b\d+ passed\b(?!.{0,60}\b[1-9]\d* (?:failed|errors?)\b)",
    re.IGNORECASE,
)
_GOES_ON = lazy(
    r"\bre-?try|\bretries\b|\battempt \d+ ?(?:/|of) ?\d|\bignor(?:ed|ing)\b|\bfall(?:s|ing)? ?back\b|\bskipp(?:ed|ing)\b|\brecover(?:ed|ing)\b|\bresum(?:ed|ing)\b|\breconnect",
    re.IGNORECASE,
)
_GIVES_UP = lazy(
    r"\b(?:max(?:imum)?|after|out of|exceeded).{0,30}\bretries\b|\bretries\b.{0,20}\bexceeded|\b(?:giving|gave) up\b|\bafter \d+ attempts\b",
    re.IGNORECASE,
)
_WARNS = lazy(r"\bwarning\b", re.IGNORECASE)
_EVENT = lazy(r"^\s*(?:Warning|Normal)\s{1,12}[A-Z]\w+\s", needs=("Warning", "Normal"))  # in the table of `kubectl describe`
# The store on a node when MPI leaves, and the group of processes that Slurm clears away behind a step.
_BOOKS = lazy(
    r"PMIX ERROR: .{1,80} in file gds_\w{1,40}\.c at line \d|\brmdir\(/(?:dev/cpuset|sys/fs/cgroup)/[^)]{1,300}\):?(?: failed:?)? Device or resource busy",
    needs=("PMIX ERROR", "rmdir("),
)
# What the kernel prints, as dmesg (plain, -T, --decode), journalctl, syslog and /dev/kmsg show it, and what the fabric manager writes to its own log.
_KERNEL = lazy(
    r"(?:(?:<\d{1,3}>)?|.{0,120}?\bkernel: )\[ *\d{1,9}\.\d{6}\]"
    r"|\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\] (?!\W{0,2}(?:[A-Z]+\b\W{0,2} )?(?i:error|critical|fatal|exception|traceback)\b)"
    r"|(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{6})?|\d{4}-\d\d-\d\dT[\d:.,+Z-]{8,24}|[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d [A-Z]{3,4}) [\w.-]{1,80} kernel: "
    r"|(?:kern|user|daemon|syslog) {0,4}:[a-z]{3,6} {0,3}: "
    r"|\d{1,3},\d{1,12},\d{1,17},-(?:,caller=[TC]\d{1,9})?;"
    r"|\[[A-Z][a-z]{2} \d\d \d{4} \d\d:\d\d:\d\d\] \[[A-Z]{3,8}\] \[tid \d{1,9}\] "
)


def only_speaks_of(text: str) -> bool:
    """True for a line in which a message is the name of something or an example: nothing has happened."""
    text = text[:LOOK]
    return bool(_PASSED.search(text) or _DOCUMENT.match(text) or _REMARK.match(text) or _COMMIT.match(text))


def kernels(raw: str) -> bool:
    """True for a line of the kernel's log: it tells of the machine, and is no word of a job."""
    return _KERNEL.match(raw[:LOOK]) is not None


def looks_like_an_error(text: str, raw: str, *, loud: bool = False) -> bool:
    """``text``: the line without its prefixes; ``raw``: with them; ``loud``: its own level says error. The kernel's troubles are no word of a job."""
    text = text[:LOOK]
    word = _WORD.search(text)
    said = word and _COMMAND.search(text, 0, word.start())
    if said or only_speaks_of(text) or _COUNT.match(text) or _NONE.search(text):
        return False
    if _EVENT.match(text) or _BOOKS.search(text) or kernels(raw):
        return False
    if not loud and (word is None or _WARNS.search(text[: word.start()])):
        return False
    return _GOES_ON.search(text) is None or _GIVES_UP.search(text) is not None
