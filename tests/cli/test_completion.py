import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.cli.asking import Ask, asking
from tests.needs import needs

from crosswind.cli.completion import SHELLS, commands_of
from crosswind.cli.main import VERBS, build_whole_parser


def is_there(shell: str) -> pytest.MarkDecorator:
    return needs(shell, "its own syntax", unless=bool(shutil.which(shell)))


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    return asking(capsys)


def script(ask: Ask, shell: str) -> str:
    code, said, complaint = ask("completion", shell)
    assert (code, complaint) == (0, "")
    return said


def completed(of_bash: str, *words: str) -> list[str]:
    """Return the candidates of bash for a command line whose last word is being typed."""
    line = " ".join(shlex.quote(word) for word in words)
    typed = f"COMP_WORDS=(crosswind {line}); COMP_CWORD={len(words)}; _crosswind"
    command = ["bash", "-c", f'{of_bash}\n{typed}\nprintf "%s\\n" "${{COMPREPLY[@]}}"']
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_bash_completes_verbs_actions_options_and_choices(ask: Ask) -> None:
    of_bash = script(ask, "bash")
    verbs = completed(of_bash, "")
    assert {verb.name for verb in VERBS} <= set(verbs)
    assert "--version" in verbs
    assert completed(of_bash, "ru") == ["run", "runs"]
    assert "--columns" in completed(of_bash, "runs", "--")
    assert completed(of_bash, "runs", "--state", "c") == ["completed"]
    assert "exec" in completed(of_bash, "tune", "")
    assert completed(of_bash, "tune", "best", "STUDY", "--format", "y") == ["yaml"]
    assert {"agent", "slurm", "systemd", "--print"} <= set(completed(of_bash, "deploy", ""))


def test_bash_leaves_files_and_the_users_own_program_to_itself(ask: Ask) -> None:
    of_bash = script(ask, "bash")
    assert completed(of_bash, "runs", "--workload", "") == []
    assert completed(of_bash, "run", "--", "torchrun", "--st") == []
    assert completed(of_bash, "nosuch", "x") == []


@pytest.mark.parametrize("shell", [pytest.param(name, marks=is_there(name)) for name in ("bash", "zsh", "fish")])
def test_every_shell_can_read_its_script(ask: Ask, shell: str) -> None:
    done = subprocess.run([shell, "-n"], input=script(ask, shell), text=True, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


FISH, ZSH = (is_there(shell) for shell in ("fish", "zsh"))
LINES = [
    ("ru", {"run", "runs"}),
    ("runs --stat", {"--state"}),
    ("runs --state ", {"running", "completed", "failed", "stopped", "lost"}),
    ("tune best STUDY --format y", {"yaml"}),
    ("deploy ", {"agent", "slurm", "systemd"}),
]


@FISH
@pytest.mark.parametrize(("line", "candidates"), LINES)
def test_fish_completes_the_same(ask: Ask, tmp_path: Path, line: str, candidates: set[str]) -> None:
    (tmp_path / "crosswind.fish").write_text(script(ask, "fish"))
    asked = f"source {tmp_path}/crosswind.fish; complete -C 'crosswind {line}'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", asked], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert done.stderr == ""
    assert {said.partition("\t")[0] for said in done.stdout.splitlines()} - {"crosswind.fish"} == candidates


@ZSH
@pytest.mark.parametrize(("line", "candidates"), LINES)
def test_zsh_is_offered_the_same(ask: Ask, tmp_path: Path, line: str, candidates: set[str]) -> None:
    """Without a terminal: zsh's own functions, which would narrow them to what is typed, print them instead."""
    (tmp_path / "crosswind.zsh").write_text(script(ask, "zsh"))
    words = " ".join(f"'{word}'" for word in f"crosswind {line}".split(" "))
    asked = f"""compdef() {{ : }}; _files() {{ : }}; _describe() {{ print -rl -- "${{(P@)2}}" }}
        source {tmp_path}/crosswind.zsh; words=({words}); CURRENT=$#words; _crosswind; true"""
    done = subprocess.run(["zsh", "-f", "-c", asked], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert candidates <= {said.partition(":")[0] for said in done.stdout.splitlines()}


def test_every_command_is_in_the_script_of_every_shell() -> None:
    commands = list(commands_of(build_whole_parser()))
    assert {"", "runs", "tune exec", "lab run"} <= {command.path for command in commands}
    for make in SHELLS.values():
        made = make(commands)
        for command in commands:
            assert all(word.lstrip("-") in made for word in command.follow)
