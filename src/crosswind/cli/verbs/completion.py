"""`crosswind completion SHELL`: what completes verbs and options in a shell."""

import argparse

from crosswind.cli.completion import SHELLS, commands_of
from crosswind.cli.main import build_whole_parser
from crosswind.cli.text.output import say, say_json
from crosswind.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("shell", choices=list(SHELLS))
    parser.epilog = (
        'In ~/.bashrc: eval "$(crosswind completion bash)"; in ~/.zshrc, after compinit: '
        'eval "$(crosswind completion zsh)"; in ~/.config/fish/config.fish: crosswind completion fish | source'
    )


def execute(arguments: argparse.Namespace, settings: Settings) -> int:  # noqa: ARG001 - as every verb
    """Print the script."""
    script = SHELLS[arguments.shell](list(commands_of(build_whole_parser())))
    if arguments.json:
        say_json({"shell": arguments.shell, "script": script})
    else:
        say(script)
    return 0
