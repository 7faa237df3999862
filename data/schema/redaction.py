"""Secrets taken out of command lines, environments and messages before anything of them is written."""

import re
from collections.abc import Iterable, Mapping, Sequence

REDACTED = "[redacted]"
_LIKELY = re.compile(
    r"token|secret|passw|pwd|passphrase|passcode|cred|key|auth|bearer|basic|cookie|jwt|pat|sas|sig|@|AKIA|ASIA"
    r"|hf_|sk-|gh[pousr]_|glpat-|xox|AIza|ya29|nvapi-|wandb_v1|dapi[0-9a-f]|eyJ",
    re.IGNORECASE,
)


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


SECRET_WORDS = word_set(
    "token secret secrets password passwd pwd passphrase passcode credential credentials creds key apikey authtoken "
    "auth authorization bearer cookie jwt pat sas sig signature privatekey accesskey secretkey"
)
VOCABULARY = word_set("pad eos bos unk mask sep cls special start end image max min num per")
NEVER_A_NUMBER = word_set("password passwd pwd passphrase passcode secret")
SHORT_NUMBER = re.compile(r"[+-]?[\d.]{1,8}(e[+-]?\d+)?|true|false|none|null|yes|no", re.IGNORECASE)
LEAST_SECRET = 8  # letters: a shorter value of a secret variable may stand anywhere by chance
_NAME = r"[A-Za-z][\w.-]*"
_URL_USER = re.compile(r"\b([a-z][a-z0-9+.-]*://)[^/\s@'\"]+@", re.IGNORECASE)
_ASSIGNED = re.compile(rf"""(?P<name>{_NAME})(?P<middle>["']?\s*[=:]\s*["']?)(?!//)(?P<value>[^\s"'&;,}}]+)""")
_HEADER = re.compile(r"\b(Bearer|Basic|Token)\s+[A-Za-z0-9._~+/=-]{8,}")
_SHAPES = re.compile(
    r"hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}"
    r"|xox[abeoprs]-[\w-]{10,}|A(?:KI|SI)A[0-9A-Z]{16}|AIza[\w-]{30,}|ya29\.[\w-]{16,}|nvapi-[\w-]{16,}"
    r"|wandb_v1_\w{16,}|dapi[0-9a-f]{32}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.DOTALL,
)


def words_of(name: str) -> list[str]:
    """Return the words of a parameter's or variable's name, in small letters: `apiKey`, `API_KEY` and `api-key`."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return [word for word in re.split(r"[^A-Za-z0-9]+", apart.lower()) if word]


def is_secret(name: str, value: object) -> bool:
    """Return whether a value of this name is to be kept secret: `api_key` and `HF_TOKEN`, not `max_tokens`."""
    words = words_of(name)
    secret = SECRET_WORDS.intersection(words)
    if not secret or isinstance(value, bool):
        return False
    if VOCABULARY.intersection(words) and secret <= {"token", "key"}:
        return False
    return bool(secret & NEVER_A_NUMBER) or not SHORT_NUMBER.fullmatch(str(value))


def secrets_in(environment: Mapping[str, str]) -> list[str]:
    """Return the secret values of an environment, the longest first, to look for elsewhere."""
    values = {value for name, value in environment.items() if len(value) >= LEAST_SECRET and _holds_secret(name, value)}
    return sorted(values, key=len, reverse=True)


def _holds_secret(name: str, value: str) -> bool:
    """Return whether a variable's whole value is a secret: a path to a key file, or a socket, is none."""
    return is_secret(name, value) and not value.startswith(("/", "./", "~"))


def redacted(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the text without credentials in URLs, tokens of known shapes, `name=value` of secrets, and these."""
    for secret in secrets:
        text = text.replace(secret, REDACTED)
    text = _URL_USER.sub(rf"\1{REDACTED}@", text)
    text = _SHAPES.sub(REDACTED, text)
    text = _HEADER.sub(rf"\1 {REDACTED}", text)
    return _ASSIGNED.sub(_without_value, text)


def redacted_words(words: Iterable[str], secrets: Iterable[str] = ()) -> list[str]:
    """Return a command's words without secrets, also where the value of a secret option is the next word."""
    values, cleaned, option = list(secrets), list[str](), ""
    for word in words:
        is_option = word.startswith("-")
        is_hidden = bool(option) and not is_option and is_secret(option, word)
        cleaned.append(REDACTED if is_hidden else redacted(word, values))
        option = word if is_option and "=" not in word else ""
    return cleaned


def shown_words(words: Sequence[str]) -> Sequence[str]:
    """Return the words of a stored command without secrets: it may be older than their redaction on the way in."""
    return redacted_words(words) if _LIKELY.search(" ".join(words)) else words


def _without_value(match: re.Match[str]) -> str:
    name, value = match["name"], match["value"]
    if not is_secret(name, value) or value.startswith(REDACTED) or value in ("Bearer", "Basic", "Token"):
        return match[0]
    return f"{name}{match['middle']}{REDACTED}"
