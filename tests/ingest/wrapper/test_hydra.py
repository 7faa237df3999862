"""Programs of Hydra, whose command line names a file without its folder or suffix."""

from pathlib import Path

import pytest

from crosswind.ingest.wrapper.defining import Rule
from crosswind.ingest.wrapper.described import Described, described

SCRIPT = """
import hydra
@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(config): ...
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a script in `src` and its configurations."""
    for place in ("src/conf", "src/other", "extra"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "small.yaml").write_text(f"place: {place}\n")
    (tmp_path / "src" / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def of(*words: str, rule: Rule | None = None) -> Described:
    return described(["python", *words], rule=rule or Rule(), environment={})


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (("src/train.py", "--config-name", "small"), "src/conf/small.yaml"),
        (("src/train.py", "--config-name=small.yaml"), "src/conf/small.yaml"),
        (("src/train.py", "-cn", "small", "-cp", "other"), "src/other/small.yaml"),
        (
            ("src/train.py", "--config-path", "none", "--config-dir", "extra", "--config-name", "small"),
            "extra/small.yaml",
        ),
        (("-m", "src.train", "--config-name", "small"), "src/conf/small.yaml"),
    ],
)
def test_the_named_file_is_part_of_the_configuration_by_its_content(
    folder: Path, words: tuple[str, ...], file: str
) -> None:
    first = of(*words, "lr=0.1").configuration
    assert set(first) == {"config_name", "lr"}
    assert str(first["config_name"]).startswith("sha256:")
    (folder / file).write_text("changed: true\n")
    assert of(*words, "lr=0.1").configuration["config_name"] != first["config_name"]


def test_what_was_typed_is_kept_too() -> None:
    assert of("src/train.py", "--config-name", "small").tags["argument.config_name"] == "small"


def test_a_name_that_is_no_file_stays_a_name() -> None:
    assert of("src/train.py", "--config-name", "large").configuration == {"config_name": "large"}
    assert of("nosuch.py", "--config-name", "x" * 5000).configuration == {"config_name": "x" * 1000}
    assert of("..", "-cn", "small").configuration == {"cn": "small"}


def test_an_override_of_the_rule_counts() -> None:
    assert of("src/train.py", "--config-name", "small", rule=Rule(ignore=("config-name",))).configuration == {}
