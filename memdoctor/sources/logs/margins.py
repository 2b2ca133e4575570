"""Prefixes that no table knows: a margin that some program puts before each line.

It is found by what stands behind it: torch's tag, a traceback, a line of NCCL's, of mpirun's or of torchrun's tee, none of which anybody but a margin stands
before. What it looks like is made from the one found (numbers, times, levels and files of code may be others on the next line), and it is
believed where most lines begin so, and differ behind it: "waiting for [rank3]: 5 s" on each line is a message, however often it comes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memdoctor.lazy import lazy
from memdoctor.sources.logs.odd_stamps import ODD
from memdoctor.sources.logs.peeling import prefix_end
from memdoctor.sources.logs.prefix_table import EPOCH, LETTER, NUMBER, Family
from memdoctor.sources.logs.stamps import CLOCK, CTIME, GLOG, ISO, SHORT, SLASHED, SYSLOG

WITHIN = 150  # characters of a margin at most
_LOOK = 800  # characters of a line that are looked at
SHARE = 0.8  # of the lines must have it; ...
SHARE_NEAR = 0.6  # ... of those just behind, where other writers may be between them
FEWEST = 3  # lines that must have it, and different beginnings of what stands behind it
MOST = 8  # that are looked at
_LEVELS = "DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL|TRACE|NOTICE|EXCEPTION"
_LOUD = rf"(?:(?P<level>ERROR|CRITICAL|FATAL)|(?i:{_LEVELS}))"  # others say nothing sure: a shipper's INFO stands before every error
_ANY = rf"(?P<word>(?i:{_LEVELS}))"
_QUIET = rf"(?i:{_LEVELS})"
_TIMES = (ISO, SLASHED, CTIME, ODD, SYSLOG, GLOG, SHORT, EPOCH, CLOCK)
_GATES = ("[rank", "Traceback (most", '  File "', " NCCL ", "[default", "]<std")
_BEHIND = lazy(
    r"\[rank\d{1,7}\]:(?=[ \[]|\Z)|\[default\d{1,5}\]:|\[[^\]\s]{1,120}\]<std(?:out|err)>:|Traceback \(most recent call last\):| {2}File \"[^\"]{1,400}\", line \d{1,9}, in "
    r"|(?<![\w.-])[A-Za-z0-9][\w.-]{0,100}:\d{1,9}:\d{1,9} \[\d{1,4}\] (?:\S{1,200} (?:\(\w{1,80}\) )?)?NCCL (?:INFO|WARN)",
    re.A,
)
_QUOTES = tuple("\"'`<{([=,")  # before a tag that a sentence or a piece of code names
_DRAWN = frozenset(" \t|+-─│╭╰┃>E")  # before the lines of an exception group, a box, a quotation, or of pytest
_SENTENCE = lazy(r"(?:[A-Za-z,]{2} [a-z]+|^(?:from|of|on|for|by|at|to|in|with|and|rank)) \Z")  # "waiting for [rank3]: "
# A label that may tell a rank, behind something else: it is learnt by itself.
_LABEL = lazy(r"(?<=[\s\]>|)}])(?:\d{1,6}:|\[\d{1,6}\]|[\[(]?(?:rank|Rank|RANK)[ :=_]?\d{1,7}[\])]?:?) \Z")
_PART = lazy(
    rf"(?P<time>{ISO}|{SLASHED}|{CTIME}|{ODD}|{SYSLOG}|{GLOG}|(?<!\d){SHORT}|(?<!\d){EPOCH}(?!\d)|(?<!\d){CLOCK})"
    rf"|(?<![A-Za-z])(?P<level>(?i:{_LEVELS}))(?![A-Za-z])(?P<pad> *)"
    r"|(?P<file>[\w./<>-]{1,120}\.(?:py|go|cc|cpp|cu|rs|java|js):\d{1,9})"
    r"|(?P<hex>(?<![\w])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}(?!\w))"
    r"|(?P<place>(?<!\w)[A-Za-z][A-Za-z_./-]*\d[\w./-]*)"
    r"|(?P<number> *\d+)",
    re.A,
)
_DIGITS = lazy(r"\d+", re.A)
_WORDS = lazy(r"\s*\S{0,12}(?: \S{1,12}){0,2}")
_LABEL_FIRST = lazy(r"\d{1,6}: |\[\d{1,6}\] |", re.A)


def hides(text: str) -> bool:
    """Whether a tag or a traceback stands behind something in ``text``."""
    return text.find("[rank", 1, WITHIN) > 0 or text.find("Traceback (most", 1, WITHIN) > 0


def recognise_margin(rests: Sequence[str], near: Sequence[str] | None = None) -> Family | None:
    """The margin that most of ``rests`` begin with; None if none does. They are lines of a sample without the prefixes known so far.

    ``near``: lines, the first of which may have one, and those that follow it; the others count where the sample does not show it.
    """
    tried: set[str] = set()
    for rest in rests if near is None else near[:1]:
        rest = rest[:_LOOK]
        if not any(gate in rest for gate in _GATES):
            continue
        match = _BEHIND.search(rest, 1)
        if match is None or match.start() > WITHIN:
            continue
        margin = _Margin(_LABEL.sub("", rest[: match.start()]), tag=match[0].startswith("[rank"))
        if not margin.plausible or margin.shape in tried:
            continue
        family = margin.believe(rests, SHARE) or (margin.believe(near, SHARE_NEAR) if near else None)
        if family is not None:
            return family
        tried.add(margin.shape)
        if len(tried) == MOST:
            break
    return None


class _Margin:
    """One that was found: ``text``, with torch's ``tag`` behind it or something else. ``shape`` is a pattern of what looks like it."""

    def __init__(self, text: str, *, tag: bool) -> None:
        self._text, self._tag = text, tag
        self.shape = self._build(_ANY, places=True)

    @property
    def plausible(self) -> bool:
        """Whether it ends as a prefix does, and is no sentence and no part of a drawing."""
        text = self._text
        return (
            text[-1] in " \t:>|])}"
            and not text.rstrip().endswith(_QUOTES)
            and _SENTENCE.search(text) is None
            and (self._tag or not _DRAWN.issuperset(text))
        )

    def _build(self, level: str, *, places: bool) -> str:
        """``level``: a pattern of the levels, "" for those of the text alone; ``places``: put the name of a machine or process in a group."""
        text, parts, at, timed = self._text, list[str](), 0, False
        for match in _PART.finditer(text):
            parts.append(re.escape(text[at : match.start()]))
            at = match.end()
            if match["time"] is not None:
                like = next(time for time in _TIMES if re.fullmatch(time, match["time"], re.A))
                parts.append(f"(?:{like})" if timed else f"(?P<time>{like})")
                timed = True
            elif match["level"] is not None:
                parts.append(_like_level(match, level, last=at == len(text)) if level else re.escape(match[0]))
                level = level and _QUIET
            elif match["file"] is not None:
                parts.append(r"[\w./<>-]{1,120}:\d{1,9}")
            elif match["hex"] is not None:
                parts.append("[0-9a-f]{7,64}")
            elif match["place"] is not None:
                like = _DIGITS.sub(r"\\d+", re.escape(match[0]))
                parts.append(f"(?P<place>{like})" if places else like)
                places = False
            else:
                parts.append(r" {0,12}\d{1,20}")
        return "".join([*parts, re.escape(text[at:])])

    def believe(self, lines: Sequence[str], share: float) -> Family | None:
        """The family, where so many of ``lines`` have the margin."""
        match = re.compile(self.shape, re.A).match
        matches = [found for line in lines if (found := match(line)) is not None]
        if len(matches) < max(FEWEST, share * len(lines)):
            return None
        if len({_beginning(found.string, found.end()) for found in matches}) < FEWEST:
            return None
        words, places = _said(matches, "word"), _said(matches, "place")
        several = 1 < len(places) <= len(matches) / FEWEST
        firsts = {found.string[0] for found in matches}
        first = "".join(sorted(firsts)) + (NUMBER if any(map(str.isdigit, firsts)) else "") + (LETTER if len(words) > 1 else "")
        pattern = self._build(_LOUD if len(words) > 1 else "", places=several)
        return Family("margin", first, "", pattern, "host" if several else "", inner=True)


def _said(matches: Sequence[re.Match[str]], group: str) -> set[str]:
    return {found[group] for found in matches} if group in matches[0].re.groupindex else set()


def _like_level(match: re.Match[str], level: str, *, last: bool) -> str:
    """A level, in a column as wide where it is one. Where the message comes next, its own indentation stays."""
    pad = len(match["pad"])
    if pad < 2:
        return level + " " * pad
    return rf"(?={level}(?: |\Z)).{{{len(match[0])}}}" if last else f"{level} *"


def _beginning(line: str, end: int) -> str:
    """What stands behind the margin, as far as lines of one kind have it in common."""
    label = _LABEL_FIRST.match(line, end)
    found = _WORDS.match(line, prefix_end(line, end if label is None else label.end()))
    return "" if found is None else _DIGITS.sub("0", found[0])
