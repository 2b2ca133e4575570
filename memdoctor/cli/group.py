"""The top of the command line: names of the commands, each imported only when it is run."""

from __future__ import annotations

import importlib
from typing import Any

import click

from memdoctor import __version__
from memdoctor.errors import InputError

# name -> (where its command is, one line of help). The help stands here so that listing commands imports none of them.
COMMANDS = {
    "check": ("memdoctor.cli.check:check", "Look at the machine and the training environment."),
    "logs": ("memdoctor.cli.logs:logs", "Find the root cause of a failed run in its logs."),
    "explain": ("memdoctor.cli.explain:explain", "Explain a cause or a rule: what it means, what looks like it, what to do."),
    "rules": ("memdoctor.cli.rules:rules", "List, show, begin, test and score rules."),
    "guide": ("memdoctor.cli.guide:guide", "Print the troubleshooting guide."),
}
# Part of the command line for good, and not built yet.
LATER = ("lint", "estimate", "plan", "recipe", "confirm", "preflight", "watch")


class LazyGroup(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in LATER:
            raise InputError(f"`memdoctor {cmd_name}` is not in this version")
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_) for name, (_, help_) in COMMANDS.items()])
        with formatter.section("Not in this version"):
            formatter.write_text(", ".join(LATER))


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="memdoctor")
@click.pass_context
def root(ctx: click.Context) -> Any:
    """The doctor for large-model training jobs: Megatron-LM, DeepSpeed, PyTorch with NCCL.

    \b
    Exit codes: 0 nothing found (at or above --fail-on), 1 something found,
    2 wrong usage or no readable input, 3 memdoctor itself failed.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(2)
