import pytest

from crosswind.data.schema.redaction import SECRET_WORDS, is_secret, redacted, redacted_words, secrets_in, shown_words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://me:pass@host/repo.git", "https://[redacted]@host/repo.git"),
        ("redis://:pass@host:6379/0", "redis://[redacted]@host:6379/0"),
        ("https://host/x?user=1&sig=abcdef&v=2", "https://host/x?user=1&sig=[redacted]&v=2"),
        ("WANDB_API_KEY=abcdef123 python train.py", "WANDB_API_KEY=[redacted] python train.py"),
        ('{"api_key": "abcdef", "lr": 0.1}', '{"api_key": "[redacted]", "lr": 0.1}'),
        ("Authorization: Bearer abcdefghijk", "Authorization: Bearer [redacted]"),
        ("token hf_abcdefghijklmnopqrst!", "token [redacted]!"),
        ("AKIAABCDEFGHIJKLMNOP", "[redacted]"),
        ("--password=12345", "--password=[redacted]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----", "[redacted]"),
    ],
)
def test_secrets_are_taken_out(text: str, expected: str) -> None:
    assert redacted(text) == expected
    assert shown_words(["python", text]) == redacted_words(["python", text])


@pytest.mark.parametrize(
    "text",
    [
        "--max_tokens=512",
        "num_key_value_heads=8",
        "pad_token=<pad>",
        "--lr=1e-3",
        "https://host/x",
        "key_dim=64",
        "a:b",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redacted(text) == text


def test_the_next_word_after_a_secret_option_is_its_value() -> None:
    words = ["train.py", "--token", "abc", "--hf-token", "--lr", "1", "--password", "1234", "--max_tokens", "64"]
    expected = ["train.py", "--token", "[redacted]", "--hf-token", "--lr", "1", "--password", "[redacted]"]
    assert redacted_words(words) == [*expected, "--max_tokens", "64"]


def test_the_value_of_a_secret_variable_is_taken_out_wherever_it_stands() -> None:
    secrets = secrets_in({"HF_TOKEN": "letters-and-more", "SSH_AUTH_SOCK": "/tmp/agent.1", "MAX_TOKENS": "100000000"})
    assert secrets == ["letters-and-more"]
    assert redacted("push letters-and-more there", secrets) == "push [redacted] there"


@pytest.mark.parametrize(
    ("name", "is_so"), [("apiKey", True), ("API-KEY", True), ("keyboard", False), ("tokens", False)]
)
def test_names_are_read_by_their_words(name: str, is_so: bool) -> None:
    assert is_secret(name, "value") is is_so


@pytest.mark.parametrize("word", sorted(SECRET_WORDS))
def test_every_secret_word_is_looked_for_in_stored_commands(word: str) -> None:
    assert shown_words(["x", f"--{word}", "abcd1234efgh"]) == ["x", f"--{word}", "[redacted]"]
