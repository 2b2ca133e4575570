"""What is ignored goes with its consequences; what is left is judged as before."""

from __future__ import annotations

from typing import Any

import pytest

from memdoctor.engine.ignore import check_ignored, without_ignored
from memdoctor.engine.relate import Related
from memdoctor.engine.schema import Base
from memdoctor.errors import InputError
from memdoctor.model import Diagnosis, Incident


def found(id_: str, rule: str, cause: str, severity: Any = "error", explained_by: str | None = None, attempt: int = 1) -> Diagnosis:
    return Diagnosis(id_, rule, cause, severity, "likely", "m", "w", "n", "t", "restart", attempt=attempt, explained_by=explained_by)


RELATED = Related(
    diagnoses=(
        found("d1", "oom/logits", "oom.logits"),
        found("d2", "hang/timeout", "hang.straggler", explained_by="d1"),
        found("d3", "net/socket", "net.socket", explained_by="d2"),
        found("d4", "job/code", "job.code"),
        found("d5", "net/fallback", "net.fallback", "warning"),
    ),
    incidents=(Incident(1, "oom.logits", ("d1", "d2", "d3", "d4")),),
    root_cause="oom.logits",
    confidence="likely",
    action="restart",
)


def test_nothing_to_ignore() -> None:
    assert without_ignored(RELATED, ()) is RELATED
    assert without_ignored(RELATED, ("ckpt.*",)) is RELATED


@pytest.mark.parametrize("glob", ["oom.*", "oom/logits", "oom/*"])
def test_the_root_cause_goes_with_what_follows_from_it(glob: str) -> None:
    left = without_ignored(RELATED, (glob,))
    assert [diagnosis.id for diagnosis in left.diagnoses] == ["d4", "d5"]
    assert (left.root_cause, left.incidents[0].root_cause, left.incidents[0].diagnoses) == ("job.code", "job.code", ("d4",))


def test_a_consequence_alone() -> None:
    left = without_ignored(RELATED, ("hang.*",))
    assert [diagnosis.id for diagnosis in left.diagnoses] == ["d1", "d4", "d5"]
    assert left.root_cause == "oom.logits"


def test_all_errors_leave_the_warning() -> None:
    left = without_ignored(RELATED, ("oom.*", "job.code"))
    assert (left.root_cause, left.incidents[0].root_cause) == ("net.fallback", None)
    assert without_ignored(RELATED, ("*",)).root_cause is None


def test_an_id_that_does_not_exist_is_refused() -> None:
    base = Base(causes=frozenset({"oom.logits", "oom.host"}))
    check_ignored(["oom.*", "oom.host"], base)
    with pytest.raises(InputError, match=r"did you mean oom\.logits"):
        check_ignored(["oom.logit"], base)
