import shlex
import shutil
import subprocess

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


def test_every_command_is_in_the_script_of_every_shell() -> None:
    commands = list(commands_of(build_whole_parser()))
    assert {"", "runs", "tune exec", "lab run"} <= {command.path for command in commands}
    for make in SHELLS.values():
        made = make(commands)
        for command in commands:
            assert all(word.lstrip("-") in made for word in command.follow)
