from pathlib import Path

import pytest

from crosswind.data.schema.command.arguments import Argument, arguments_of
from crosswind.ingest.wrapper.defining import MAX_DIGESTED, Rule, model_named


@pytest.mark.parametrize(
    "word",
    [
        "--batch_size=8", "--lr=1e-3", "--num_workers=4", "--log_interval=10", "--lora_rank=8", "--init_from=gpt2",
        "--model_name=gpt2", "--dataset=wikitext", "--optimizer=adam", "trainer.max_epochs=3", "--compile",
        "--save_steps=500", "--mixed_precision=bf16", "--hidden_size=64", "--output_dim=10", "--model=org/model",
        "--max_tokens=512", "--profile", "--timeout=60",
    ],
)  # fmt: skip
def test_what_tunes_the_work_defines(word: str) -> None:
    [argument] = arguments_of([word])
    assert Rule().defines(argument)


@pytest.mark.parametrize(
    "word",
    [
        "--seed=3", "--seed_everything=3", "trainer.seed=1", "--out_dir=out", "--output_dir=x", "--logdir=x", "-o=x",
        "--data=/data/imagenet", "--checkpoint=run5.pt", "--run_name=x", "--wandb_project=p", "--exp-name=x",
        "--master_port=29500", "--dist-url=tcp://h:1", "--hostfile=h", "--date=2026-11-25", "--since=20261125",
        "--job_id=7", "--tag=nightly", "hydra.run.dir=x", "--resume", "--local_rank=0", "--api_key=abc",
        "--verbose", "--name=x",
    ],
)  # fmt: skip
def test_seeds_paths_names_ports_and_dates_define_nothing(word: str) -> None:
    [argument] = arguments_of([word])
    assert not Rule().defines(argument)


def test_patterns_of_names_override_the_rule() -> None:
    rule = Rule(define=("seed", "data-*"), ignore=("trainer.*", "--lr"))
    is_defining = {argument.name: rule.defines(argument) for argument in arguments_of(
        ["--seed=1", "--data-path=/d", "trainer.x=1", "--lr=1", "--batch=2"]
    )}  # fmt: skip
    assert is_defining == {"seed": True, "data_path": True, "trainer.x": False, "lr": False, "batch": True}


def test_no_pattern_makes_a_secret_define() -> None:
    assert not Rule(define=("*",)).defines(Argument("api_key", "abc"))


def test_a_configuration_file_counts_by_its_content(tmp_path: Path) -> None:
    one, other, same = (tmp_path / name for name in ("one.yaml", "other.yaml", "same.yaml"))
    one.write_text("lr: 1\n")
    other.write_text("lr: 2\n")
    same.write_text("lr: 1\n")
    first, second, third = (Rule().digest(Argument("config", str(path))) for path in (one, other, same))
    assert first is not None
    assert first.startswith("sha256:")
    assert first == third != second
    assert Rule().digest(Argument("argument1", str(one), is_named=False)) == first
    assert Rule().digest(Argument("argument1", f"@{one}", is_named=False)) == first


def test_other_files_have_no_digest(tmp_path: Path) -> None:
    data, large = tmp_path / "data.json", tmp_path / "large.yaml"
    data.write_text("{}")
    large.write_bytes(b" " * (MAX_DIGESTED + 1))
    assert Rule().digest(Argument("train_data", str(data))) is None
    assert Rule().digest(Argument("output", str(data))) is None
    assert Rule().digest(Argument("config", str(large))) is None
    assert Rule().digest(Argument("config", str(tmp_path / "none.yaml"))) is None
    assert Rule().digest(Argument("config", "/dev/zero.yaml")) is None
    assert Rule(ignore=("config",)).digest(Argument("config", str(data))) is None


def test_a_model_is_named_wherever_its_files_are() -> None:
    assert model_named(Argument("model_name_or_path", "/scratch/me/llama-7b/")) == "llama-7b"
    assert model_named(Argument("output_path", "/scratch/me")) is None
