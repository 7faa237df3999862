"""Completion of verbs, options and their choices in a shell, as scripts made of the parsers of all verbs."""

import argparse
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field


@dataclass
class Command:
    """A command, as the words after `crosswind`, and what may follow it."""

    words: tuple[str, ...]
    follow: dict[str, str] = field(default_factory=dict)  # verbs, actions, options and choices; each with its help
    choices: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of options that take a value; none: files

    @property
    def path(self) -> str:
        """The words as one text; empty for `crosswind` alone."""
        return " ".join(self.words)


def commands_of(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[Command]:
    """Yield the command of a parser, and those below it."""
    command = Command(words)
    below: list[Command] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            command.follow |= {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, subparser in action.choices.items():
                below += commands_of(subparser, (*words, name))
        elif action.option_strings:
            _take_option(command, action)
        elif action.choices is not None:
            command.follow |= {str(choice): "" for choice in action.choices}
    yield command
    yield from below


def _take_option(command: Command, action: argparse.Action) -> None:
    shown = [name for name in action.option_strings if name.startswith("--")] or list(action.option_strings)
    text = "" if action.help in (None, argparse.SUPPRESS) else action.help
    command.follow |= dict.fromkeys(shown, (text or "").split("\n")[0])
    if action.nargs != 0:
        choices = tuple(str(choice) for choice in action.choices or ())
        command.choices |= dict.fromkeys(action.option_strings, choices)


def bash(commands: list[Command]) -> str:
    """Return the script for bash: `eval "$(crosswind completion bash)"`."""
    values = [
        f"    {_pattern(command, name)}) words={shlex.quote(' '.join(choices))}; return;;"
        for command, name, choices in _values(commands)
    ]
    words = [f"    {_quoted(command.path)}) words={shlex.quote(' '.join(command.follow))};;" for command in commands]
    return _BASH.format(paths=_paths(commands), values="\n".join(values), words="\n".join(words))


def zsh(commands: list[Command]) -> str:
    """Return the script for zsh: `eval "$(crosswind completion zsh)"`, or a file `_crosswind` of the function path."""
    values = [
        f"    ({_pattern(command, name)}) words_=({' '.join(map(shlex.quote, choices))}); is_value=1;;"
        for command, name, choices in _values(commands)
    ]
    words = [f"    ({_quoted(command.path)}) words_=({' '.join(_described(command))});;" for command in commands]
    return _ZSH.format(paths=_paths(commands), values="\n".join(values), words="\n".join(words))


def fish(commands: list[Command]) -> str:
    """Return the script for fish: `crosswind completion fish | source`."""
    paths = " ".join(shlex.quote(command.path) for command in commands if command.words)
    lines = [line for command in commands for line in _fish_lines(command)]
    heading = "# Completion of crosswind in fish: crosswind completion fish | source"
    return "\n".join([heading, f"set -g __crosswind_paths {paths}", _FISH, *lines, ""])


SHELLS: Mapping[str, Callable[[list[Command]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}


def _values(commands: list[Command]) -> list[tuple[Command, str, tuple[str, ...]]]:
    return [(command, name, choices) for command in commands for name, choices in command.choices.items()]


def _paths(commands: list[Command]) -> str:
    """The commands below the first, as alternatives of a case."""
    return "|".join(_quoted(command.path) for command in commands if command.words)


def _pattern(command: Command, option: str) -> str:
    return _quoted(f"{command.path} {option}")


def _quoted(text: str) -> str:
    return f'"{text}"'


def _described(command: Command) -> Iterator[str]:
    for word, text in command.follow.items():
        yield shlex.quote(f"{word}:{text}" if text else word)


def _fish_lines(command: Command) -> Iterator[str]:
    place = shlex.quote(f'__crosswind_at "{command.path}"')
    condition = f"-n {place}"
    for word, text in command.follow.items():
        described = f" -d {shlex.quote(text)}" if text else ""
        if not word.startswith("-"):
            yield f"complete -c crosswind -f {condition} -a {shlex.quote(word)}{described}"
            continue
        choices = command.choices.get(word)
        value = "" if choices is None else f" -x -a {shlex.quote(' '.join(choices))}" if choices else " -r -F"
        yield f"complete -c crosswind {condition} -l {word.lstrip('-')}{value}{described}"


_BASH = """\
# Completion of crosswind in bash: eval "$(crosswind completion bash)"
_crosswind_words() {{
    local path= previous= word
    words=
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        [[ $word == -- ]] && return  # the user's own program
        case "${{path:+$path }}$word" in
        {paths}) path="${{path:+$path }}$word";;
        esac
        previous=$word
    done
    case "$path $previous" in
{values}
    esac
    case "$path" in
{words}
    esac
}}
_crosswind() {{
    local words
    _crosswind_words
    COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -o bashdefault -F _crosswind crosswind
"""

_ZSH = """\
#compdef crosswind
# Completion of crosswind in zsh: eval "$(crosswind completion zsh)", after compinit
_crosswind() {{
    local path_= previous= word is_value=
    local -a words_
    for word in "${{(@)words[2,CURRENT-1]}}"; do
        [[ $word == -- ]] && {{ _files; return }}  # the user's own program
        case "${{path_:+$path_ }}$word" in
        ({paths}) path_="${{path_:+$path_ }}$word";;
        esac
        previous=$word
    done
    case "$path_ $previous" in
{values}
    esac
    if [[ -z $is_value ]]; then
        case "$path_" in
{words}
        esac
    fi
    if (( $#words_ )); then _describe crosswind words_; fi
    [[ $words[CURRENT] == -* ]] || _files
}}
if [[ $funcstack[1] == _crosswind ]]; then _crosswind "$@"; else compdef _crosswind crosswind; fi
"""

_FISH = """\
function __crosswind_at
    set -l path
    for word in (commandline -opc)[2..]
        if test "$word" = --
            return 1
        end
        if string match -qr '^[a-z]+$' -- $word; and contains -- (string join ' ' $path $word) $__crosswind_paths
            set path $path $word
        end
    end
    test "$path" = "$argv[1]"
end"""
