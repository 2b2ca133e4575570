"""The families of line prefixes, as data.

A family is tried where a line, or what is left of it, begins with one of ``first`` followed by one of ``second`` ("" = anything). Its
pattern is anchored there and takes the space that separates prefix and message, so that the message keeps its own indentation. The groups
of a pattern say what the prefix tells (a digit at the end of a name is dropped):

======== ===================================================================================================
rank     the global rank                            ds_rank  the same, but -1 where it is not known yet
task     a Slurm task: the rank, or only the node   local    the rank within the node
host     host, pod or address                       pid      of the process that prints
time     a stamp (see stamps.py)                    level    level word, or the letter of glog
logger   logger, module or file                 place    what tells machines or processes apart, where nobody knows which
======== ===================================================================================================
"""

from __future__ import annotations

from typing import Literal

from memdoctor.records import entity
from memdoctor.sources.logs.odd_stamps import ODD, ODD_NUMBERS, ODD_WORDS
from memdoctor.sources.logs.stamps import CLOCK, CTIME, ISO, SHORT, SLASHED, SYSLOG


@entity
class Family:
    """One kind of prefix.

    ``tag`` is set where a wrapper puts the prefix on *every* line of a process; it says what the tag tells apart. A header stands only on
    the first line of a message. After a ``header`` only ``inner`` families are tried: a message may begin like a wrapper.
    """

    name: str
    first: str
    second: str
    pattern: str
    tag: Literal["", "host", "task", "process", "rank", "local", "rankn"] = ""
    header: bool = False
    inner: bool = False
    stamp: bool = False  # a time alone: one of TAILS may follow
    needs: str = ""  # a text without which the pattern does not match: until a line holds it, it need not be compiled

    def may_begin(self, text: str) -> bool:
        """By the first two characters of ``text``."""
        first, second = text[:1], text[1:2]
        return first != "" and first in self.first and (not self.second or (second != "" and second in self.second))

    def may_match(self, text: str) -> bool:
        """By what ``text`` must hold."""
        return self.needs in text


NUMBER = "0123456789"
UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LETTER = UPPER + UPPER.lower()
GLOG = "VDIWECF"
DATED = "MTWFSJAOND"  # the first letters of days and months
END = r"(?: |\Z)"
LEVEL = r"(?P<level>DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL|TRACE|SUCCESS|NOTICE|EXCEPTION)"
# A level padded to eight columns; spaces beyond that, or other numbers of them, are the message's own.
PADDED = (
    r"(?:(?P<level>INFO|WARN)(?: {5}(?=\S)|:? )|(?P<level2>DEBUG|ERROR|FATAL|TRACE)(?: {4}(?=\S)|:? )"
    r"|(?P<level3>WARNING)(?: {2}(?=\S)|:? )|(?P<level4>CRITICAL|NOTICE|SUCCESS):? )"
)
NAME = r"[\w./:<>-]{1,120}"
FILE = r"[^\s:\[\]]{1,200}"
WORD = r"[A-Za-z_][\w.-]{0,80}"

EPOCH = r"(?:1[4-9]|2[01])\d{8}(?:\.\d{1,9}|\d{3}(?:\d{3}){0,2})?"

# NCCL's prefix may begin with any character of a host name; the text keeps "NCCL WARN ...".
NCCL = Family(
    "nccl", "", "", rf"(?P<host>[^\s:\[\]()|]{{1,255}}):(?P<pid>\d{{1,9}}):\d{{1,9}}(?: \[-?\d{{1,4}}\])? "
    rf"(?:\d+\.\d+ )?(?:(?P<logger>{FILE}):\d+ (?:\([^)]{{0,120}}\) )?)?(?=NCCL (?P<level>[A-Z]{{4,8}})\b)", header=True, inner=True,
)  # fmt: skip

# Recognised by their shape alone; of those with one beginning the more telling comes first.
FAMILIES: tuple[Family, ...] = (
    # --- wrappers and launchers -----------------------------------------------------------------------------------
    Family("torchrun_tee", "[", "d", r"\[default(?P<local>\d{1,5})\]:", "local"),
    Family("torchrun_template", "[", LETTER + "_", r"\[[A-Za-z_][\w.-]{0,40}?(?P<rank>\d{1,7})\|(?P<local>\d{1,5})\]:" + END, "rank", needs="|"),
    Family("openmpi_4", "[", NUMBER, r"\[\d{1,9},(?P<rank>\d{1,7})\]<(?:stdout|stderr|stddiag)>:", "rank", needs="]<std"),
    Family("openmpi_5", "[", LETTER, r"\[[\w.-]{1,80}@\d{1,9},(?P<rank>\d{1,7})\]<(?:stdout|stderr)>:" + END, "rank", needs="]<std"),
    Family("sagemaker", "[", NUMBER, r"\[\d{1,9},mpirank:(?P<rank>\d{1,7}),(?P<host>[\w.-]{1,80})\]<(?:stdout|stderr)>:", "rank", needs="mpirank:"),
    Family("kubectl", "[", "p", r"\[pod/(?P<host>[^/\]\s]{1,253})/[^\]\s]{1,63}\] ", "host", needs="[pod/"),
    Family("stern", LETTER + NUMBER, "", r"(?P<host>[a-z0-9][a-z0-9.-]{0,252}) › [\w.-]{1,63} ", "host", needs=" › "),
    # What docker compose puts before a line, on sight only where torch's tag follows; otherwise it must be learnt (see below).
    Family("compose_rank", LETTER + NUMBER, "", r"(?P<host>[A-Za-z0-9][\w.-]{0,120}) {1,40}\| (?=(?:[\dT:.,Z+-]{8,40} ){0,2}\[rank\d{1,7}\]:)", "host", needs="[rank"),
    Family("ray", "(", "", r"\((?:[^()\s,]{1,80}(?:\([^()]{0,80}\))?,? )?pid=(?P<pid>\d{1,9})(?:, ip=(?P<host>[\w.:-]{1,64}))?\)" + END, "process", needs="pid="),
    Family("ray_system", "(", "rag", r"\((?:raylet|autoscaler|gcs_server)(?:, ip=(?P<host>[\w.:-]{1,64})| \+\w{1,20})?\)" + END, "host"),
    # SkyPilot's rank is that of the node.
    Family("skypilot", "(", LETTER, rf"\({WORD}, rank=\d{{1,6}}(?=, )(?:, pid=(?P<pid>\d{{1,9}}))?(?:, ip=(?P<host>[\w.:-]{{1,64}}))?\)" + END, "process", needs=", rank="),
    # torchrun's tee with a role, on sight only where torch's tag follows.
    Family("role_tee_rank", "[", LETTER + "_", r"\[[A-Za-z_][\w-]{0,40}?(?P<local>\d{1,5})\]:(?=\[rank\d)", "local", needs="]:[rank"),
    # --- ranks ----------------------------------------------------------------------------------------------------
    # torch's loggers write the tag without a space, before the header of a message; its excepthook with one, on every line.
    Family("rank_header", "[", "r", r"\[rank(?P<rank>\d{1,7})\]:(?=\S)", inner=True),
    Family("rank", "[", "r", r"\[rank(?P<rank>\d{1,7})\]:?" + END, "rankn", inner=True),
    Family("lightning_rank", "[", "r", r"\[rank: (?P<rank>\d{1,7})\] ", inner=True, needs="[rank: "),
    # DeepSpeed's prints that lack its header. Before any other text "[Rank N]" belongs to the message.
    Family("deepspeed_print", "[", "R", r"\[Rank (?P<ds_rank>-?\d{1,7})\] (?=time \(ms\)|comm op: |step=\d|\[deepsp|DeepSpeed )", inner=True),
    # Colours whose escape sign was lost, or is written out as `cat -v` does.
    Family("colour", "[^", NUMBER + "[", r"(?:\^\[)?\[[1-9]\d{0,2}(?:;\d{1,3}){0,4}m", inner=True),
    Family("colour_end", "[^", "0m[", r"(?:\^\[)?\[0?m ?", inner=True),
    # --- headers of C++ and of torch --------------------------------------------------------------------------------
    Family("c10", "[", GLOG, rf"\[(?P<time>(?P<level>[{GLOG}])\d{{3,4}} \d\d:\d\d:\d\d\.\d{{6,9}}) (?:\d{{1,20}} )?(?P<logger>{FILE}):\d+\]" + END, header=True, inner=True),
    Family("c10_old", "[", GLOG, rf"\[(?P<level>[{GLOG}]) (?P<logger>{FILE}\.(?:cpp|cc|cu|cuh|hpp|h)):\d+\]" + END, header=True, inner=True),
    # The number is the printing process in torch's Python loggers, a thread in C++.
    Family("torch_python", GLOG, NUMBER, rf"(?P<time>(?P<level>[{GLOG}])\d{{4}} \d\d:\d\d:\d\d\.\d{{6}}) +(?P<pid>\d{{1,20}}) (?P<logger>{FILE}\.py):\d+\]" + END, header=True, inner=True),
    Family("glog", GLOG, NUMBER, rf"(?P<time>(?P<level>[{GLOG}])\d{{4}} \d\d:\d\d:\d\d\.\d{{6,9}}) +\d{{1,20}} (?P<logger>{FILE}):\d+\]" + END, header=True, inner=True),
    Family("glog_year", GLOG, "2", rf"(?P<level>[{GLOG}])(?P<time>20\d{{6}} \d\d:\d\d:\d\d\.\d{{6}}) +\d{{1,20}} (?P<logger>{FILE}):\d+\]" + END, header=True, inner=True),
    # --- headers of Python loggers ------------------------------------------------------------------------------------
    Family("python", UPPER, UPPER, rf"{LEVEL}:(?P<logger>{WORD}):", header=True, inner=True),
    Family("vllm", UPPER, UPPER, rf"{LEVEL} (?P<time>{SHORT}) (?:\[(?P<logger>{FILE}):\d+\]|(?P<logger2>{FILE}):\d+\])" + END, header=True),
    Family("level_first", UPPER, UPPER, rf"{LEVEL}[ :|]{{1,6}}(?P<time>{ISO})[,:]? (?:\[?(?P<logger>{FILE}\.py):\d+[\]:]? )?", header=True),
    Family("hugging_face", "[", UPPER, rf"\[{LEVEL}\|(?P<logger>{FILE}):\d+\] (?:(?P<time>{ISO}) )?>>" + END, header=True),
    Family("llama_factory", "[", UPPER, rf"\[{LEVEL}\|(?P<time>{ISO})\] (?P<logger>{NAME}) >>" + END, header=True),
    Family("level_bracket", "[", UPPER, rf"\[{LEVEL}\] (?:\[(?P<logger>{NAME})\] )?(?:(?P<time>{ISO})(?: -)?|\[(?P<time2>{ISO})\](?: -)?)" + END, header=True),
    Family("level_dash", UPPER, UPPER, rf"{LEVEL} - (?P<time>{ISO}) -" + END, header=True),
    Family("name_first", LETTER + "_", "", rf"(?P<logger>{WORD}) - (?P<time>{ISO}) - {LEVEL} +-" + END, header=True, needs=" - "),
    Family("mindspore", "[", UPPER, rf"\[{LEVEL}\] [A-Z_]{{2,20}}\(\d{{1,9}}:\w{{1,20}},[\w-]{{1,40}}\):(?P<time>\d{{4}}-\d\d-\d\d-\d\d:\d\d:\d\d\.\d{{3}})\.\d{{3}}(?: \[(?P<logger>{FILE}):\d+\])?" + END, header=True),
    Family("detectron", "[", NUMBER, rf"\[(?P<time>{SHORT}) (?P<logger>[\w.]{{1,80}})\]:" + END, header=True),
    Family("nemo", "[", "N", rf"\[NeMo (?P<level>[DIWEC]) (?P<time>{ISO}) (?P<logger>[^\]\s]{{1,200}})\]" + END, header=True),
    # --- system logs ---------------------------------------------------------------------------------------------------
    Family("rfc5424", "<", NUMBER, rf"<\d{{1,3}}>\d (?P<time>{ISO}) (?P<host>\S{{1,255}}) (?P<logger>\S{{1,80}}) (?:(?P<pid>\d{{1,9}})|\S{{1,128}}) \S{{1,64}} (?:-|\[[^\]]{{0,2000}}\])" + END, "process"),
    Family("kernel", "[<", " " + NUMBER, r"(?:<\d{1,3}>)?\[ {0,8}\d{1,9}\.\d{6}\](?:\[ *[TC]\d+\])? (?:(?P<host>[\w.-]{1,255}) (?P<logger>kernel): )?"),
    # The kernel's log as `dmesg --decode` prints it, and as /dev/kmsg and `cat` do.
    Family("kernel_decoded", "kuds", "esay", r"(?:kern|user|daemon|syslog) {0,4}:(?P<level>emerg|alert|crit|err|warn|notice|info|debug) {0,3}: ", needs=": "),
    Family("kernel_raw", NUMBER, NUMBER + ",", r"\d{1,3},\d{1,12},\d{1,17},-(?:,caller=[TC]\d{1,9})?;", needs=",-"),
    # `dmesg -e`: the minute at times, and seconds since the line before.
    Family("kernel_since", "[", " +" + DATED, r"\[(?:(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[ \d]\d \d\d:\d\d| {0,6}\+\d{1,9}\.\d{6})\] "),
    # --- times alone ------------------------------------------------------------------------------------------------
    Family("stamp_bracket", "[", NUMBER, rf"\[(?P<time>{ISO}|{SLASHED}|{CLOCK})(?: (?:[DTPE]P\d{{1,4}} ?){{1,3}})?\]", stamp=True),
    Family("stamp_indented", " ", " [", rf" {{1,2}}\[(?P<time>{ISO})\]", stamp=True),  # Megatron-LM's lines begin with spaces
    Family("stamp_words", "[", DATED, rf"\[(?P<time>{CTIME}|{SYSLOG})\]", stamp=True),
    Family("stamp", NUMBER, NUMBER, rf"(?P<time>{ISO}|{SLASHED})(?=[ \t:|,\[-])", stamp=True),
    Family("stamp_odd", NUMBER, NUMBER + "/ ", rf"(?P<time>{ODD_NUMBERS}|{ISO})(?=[ \t:|,;\[-])", stamp=True),
    Family("stamp_enclosed", "[(<", NUMBER + DATED, rf"(?:\[(?P<time>{ODD})\]|\((?P<time2>{ISO}|{SLASHED}|{ODD})\)|<(?P<time3>{ISO}|{SLASHED}|{ODD})>)", stamp=True),
    Family("stamp_key", "at@", "sit", rf"@?(?:ts|time|timestamp|asctime)=(?:\"(?P<time>{ISO})\"|(?P<time2>{ISO}))(?= )", stamp=True),
    Family("stamp_short", NUMBER, NUMBER, rf"(?P<time>{SHORT}|{CLOCK})(?= [-|\[]| {{1,2}}(?:DEBUG|INFO|WARN|ERROR|CRIT))", stamp=True),
    Family("syslog", "<" + DATED, NUMBER + UPPER.lower(), rf"(?:<\d{{1,3}}>)?(?P<time>{SYSLOG}) (?P<host>[\w.:-]{{1,255}}) (?P<logger>[\w./@()-]{{1,80}})(?:\[(?P<pid>\d{{1,9}})\])?:" + END, "process"),
    Family("ctime", DATED, UPPER.lower(), rf"(?P<time>{CTIME}|{SYSLOG})(?=[ :<\[])", stamp=True),
    Family("words_odd", DATED, UPPER.lower(), rf"(?:(?P<time>{ODD_WORDS})|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?P<time2>{ISO}))(?=[ :<\[])", stamp=True),
)  # fmt: skip

# What may follow a time, from its end on. Where none does, the time alone was the prefix.
TAILS: tuple[Family, ...] = (
    Family("cri", " ", "s", r" (?:stdout|stderr) [FP]" + END),
    Family("openmpi_time", "<", "s", r"<(?:stdout|stderr)>:"),
    Family("deepspeed", " [", "[" + UPPER, rf" ?\[{LEVEL}\] ?\[(?=[\w<>/-]{{0,100}}[.:])(?P<logger>[\w.<>/:-]{{1,200}}?)(?::\d+)?(?::[\w<>]+)?\](?: \[PID:(?P<pid>\d{{1,9}})\])?(?: \[(?:Rank |RANK:)(?P<ds_rank>-?\d{{1,7}})\])?" + END, header=True),
    # What a scheduler, a platform or a service puts on every line; a level here is not that of the message.
    Family("airflow", " ", "{", r" \{[\w./<>-]{1,120}:\d{1,9}\} [A-Z]{4,8} -" + END),
    Family("determined", " ", NUMBER + "abcdef[", r" (?:[0-9a-f]{8,64} )?\[rank=(?P<rank>\d{1,7})\] \|\|" + END, "rank", needs="] ||"),
    Family("hydra", " [", "[" + LETTER + "_", rf" ?\[(?P<logger>[\w.:-]{{1,120}})\] ?\[{LEVEL}\](?: -)?" + END, header=True),
    Family("bracket", " [", "[ " + UPPER, rf" ?\[ {{0,4}}{LEVEL} {{0,4}}\](?: -)?(?: (?P<logger>{FILE}\.py):\d+ -)?" + END, header=True),
    Family("structlog", " ", "[", r" \[(?P<level>debug|info|warning|error|critical|exception) {0,8}\]" + END, header=True),
    Family("name_level", " ", "[", rf" \[(?P<logger>[\w.-]{{1,80}})\] {LEVEL}:?" + END, header=True),
    Family("file_dash", " ", LETTER + "_", rf" (?P<logger>{FILE}\.py):\d+ -" + END, header=True),
    Family("level_colon", " ", UPPER, rf" {LEVEL}:(?P<logger>{WORD}):" + END, header=True),
    Family("torch_2", " ", LETTER + "_", rf" (?P<logger>{WORD}): \[{LEVEL}\]" + END, header=True, needs=": ["),
    Family("dash_level_name", " ", "-", rf" -+ {LEVEL} +- +(?P<logger>{NAME}) -" + END, header=True),
    Family("dash_name_level", " ", "-", rf" -+ (?P<logger>{NAME}) - {LEVEL} +-" + END, header=True),
    Family("dash_level", " ", "-", rf" -+ {LEVEL} *[-:]" + END, header=True),
    Family("loguru", " ", "|", rf" \| {LEVEL} *\|(?: (?P<logger>{NAME}) [-|])?" + END, header=True),
    Family("tensorflow", ":", " ", rf": (?P<level>[{GLOG}]) (?P<logger>{FILE}):\d+\]" + END, header=True),
    Family("composer", ":,", " r", rf"[:,]? ?rank(?P<rank>\d{{1,7}})\[(?P<pid>\d{{1,9}})\]\[[\w-]{{1,80}}\]: {LEVEL}: (?P<logger>{WORD}):" + END, header=True),
    Family("level", " \t:", " \t" + UPPER, rf":?[ \t]{PADDED}(?:[-|] )?(?:\[?(?P<logger>{FILE}\.py):\d+\]?:?(?: --?)? )?", header=True),
    Family("separated", " ,:;|", "", r"[:;,](?= |\Z) ?|\|(?! ) ?"),
    Family("journal", " ", LETTER + NUMBER, r" (?P<host>[\w.-]{1,255}) (?:(?P<logger>[\w./@-]{1,80})\[(?P<pid>\d{1,9})\]|(?P<logger2>kernel|systemd|slurmd|slurmstepd)):" + END, "process"),
)  # fmt: skip

# Too plain to be believed on sight: taken only where most lines of a sample have them (see learning.py), and never after a header.
AMBIGUOUS: tuple[Family, ...] = (
    # Seconds, or thousandths and so on, since 1970; a time of day, or one since the start.
    Family(
        "stamp_epoch",
        "[(12",
        NUMBER,
        r"(?:\[(?P<time>EPOCH)\]|\((?P<time2>EPOCH)\)|(?P<time3>EPOCH)(?=[ \t:;,|]))".replace("EPOCH", EPOCH),
        stamp=True,
    ),
    Family("stamp_clock", NUMBER, NUMBER, rf"(?P<time>{CLOCK})(?= )", stamp=True),
    Family("srun_label", " " + NUMBER, "", r" {0,5}(?P<task>\d{1,6}):" + END, "task"),
    Family("pipe_label", " " + NUMBER, "", r" {0,5}(?P<task>\d{1,6})\| ?", "task"),
    Family("compose", LETTER + NUMBER, "", r"(?P<host>[A-Za-z0-9][\w.-]{0,252}) {1,60}\|" + END, "host", needs="|"),
    # Own print functions. "[Rank 3] Watchdog ..." is torch's and the rank within a group, "[Rank 3] (after ..." Megatron-LM's.
    Family("gpu_words", "[", "G", r"\[GPU[ :]?(?P<rank>\d{1,7})\]:? ", "rank"),
    Family(
        "rank_words",
        "[",
        "Rr",
        r"\[(?:(?:[Rr]ank|RANK)[ :=_-]{0,2}|R)(?P<rank>\d{1,7})(?:/\d{1,7})?\]:? (?!\(after|Watchdog|Work |NCCL |\[PG|time \(ms\))",
        "rank",
    ),
    Family(
        "rank_equals",
        "rR(|",
        "",
        r"(?:\| )?(?:\(?(?:rank|Rank|RANK)[=:] ?|(?:rank|Rank|RANK)[ _](?=\d{1,7}:)|\((?:rank|Rank|RANK) (?=\d{1,7}\)))(?P<rank>\d{1,7})(?:/\d{1,7})?\)?(?:[,:]| ?\|)? (?!time \(ms\))",
        "rank",
    ),
    # `grep` in the logs of several ranks.
    Family(
        "grep_rank",
        LETTER + NUMBER + "./_-",
        "",
        r"[\w./-]{0,200}?(?<![A-Za-z])rank[-_.=]?(?P<rank>\d{1,7})(?:[-_./][\w./-]{0,80})?\.(?:log|out|err|txt)[:-](?:\d{1,9}[:-])?",
        "rank",
        needs="rank",
    ),
    Family("hydra_rank", "[", NUMBER, r"\[(?P<rank>\d{1,6})\]" + END, "rank"),
    Family("host_label", LETTER + NUMBER, "", r"(?P<host>[A-Za-z0-9][\w.-]{0,252}):" + END, "host", needs=":"),
    Family("role_tee", "[", LETTER + "_", r"\[(?P<role>[A-Za-z_]+)(?P<local>\d{1,5})\]:", "local"),
    Family("pod_container", LETTER + NUMBER, "", r"(?P<host>[a-z0-9][a-z0-9.-]{0,252}) (?P<role>[a-z0-9][a-z0-9-]{0,62}) ", "host"),
)
