"""What is wrong with the environment variables of a job: a mapping of names to values in, verdicts out; nothing is read from anywhere."""

from memdoctor.derive.variables.judging import judge_variables
from memdoctor.derive.variables.table import Context, Verdict, load_table

__all__ = ["Context", "Verdict", "judge_variables", "load_table"]
