"""Addresses of lakes in object stores, as settings have them."""

import re
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import parse_qsl, unquote, urlsplit

from crosswind.data.schema.errors import InvalidInputError

LAKE, CACHE = "CROSSWIND_LAKE", "CROSSWIND_LAKE_CACHE"
CACHE_BYTES = 20_000_000_000
OPTIONS = ("region", "endpoint_override", "scheme")  # of Arrow's addresses
BUCKET = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{1,62}")
ENDPOINT = re.compile(r"([\w.-]+|\[[0-9a-fA-F:]+\])?(:[0-9]{1,5})?")


@dataclass(frozen=True)
class LakeAddress:
    """A place in an S3-compatible store, and how many bytes of it may be kept here."""

    bucket: str
    prefix: str = ""
    region: str | None = None
    endpoint: str | None = None
    scheme: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    cache_bytes: int = CACHE_BYTES

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    @classmethod
    def of(cls, text: str, cache: str = "") -> Self:
        """Return the address `s3://[KEY:SECRET@]BUCKET[/PREFIX][?OPTION=VALUE&…]`. Raises: InvalidInputError."""
        parts = urlsplit(text)
        if parts.scheme != "s3":
            raise InvalidInputError(f"{LAKE} is {_shown(text)!r}, expected s3://BUCKET/PREFIX; without it, a folder")
        account, _, bucket = parts.netloc.rpartition("@")
        if not BUCKET.fullmatch(bucket):
            raise InvalidInputError(f"{LAKE} is {_shown(text)!r}, expected the name of a bucket, not {bucket!r:.80}")
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        if unknown := sorted(options.keys() - set(OPTIONS)):
            raise InvalidInputError(f"{LAKE} has the option {unknown[0]!r:.80}, expected {', '.join(OPTIONS)}")
        if options.get("scheme", "https") not in ("http", "https"):
            raise InvalidInputError(f"{LAKE} has the scheme {options['scheme']!r:.80}, expected http or https")
        if not ENDPOINT.fullmatch(endpoint := options.get("endpoint_override", "")):
            said = re.sub("[^/]*@", "…@", endpoint)
            raise InvalidInputError(f"{LAKE} has the endpoint_override {said!r:.80}, expected HOST or HOST:PORT")
        access_key, _, secret_key = account.partition(":")
        if bool(access_key) != bool(secret_key):
            raise InvalidInputError(f"{LAKE} is {_shown(text)!r}, expected a secret after the access key: KEY:SECRET@")
        prefix = unquote(parts.path).strip("/")
        if any(part in ("", ".", "..") for part in prefix.split("/")) and prefix:
            raise InvalidInputError(f"{LAKE} is {_shown(text)!r}, expected a prefix without empty parts, . or ..")
        return cls(
            bucket,
            prefix,
            region=options.get("region") or None,
            endpoint=options.get("endpoint_override") or None,
            scheme=options.get("scheme") or None,
            access_key=unquote(access_key) or None,
            secret_key=unquote(secret_key) or None,
            cache_bytes=_bytes(cache),
        )


def _shown(text: str) -> str:
    """Return an address without its secret."""
    return re.sub(r"//[^/]*@", "//…@", text)[:120]


def _bytes(text: str) -> int:
    if not text:
        return CACHE_BYTES
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise InvalidInputError(f"{CACHE} is {text!r:.40}, expected a number of bytes")
    return int(text)
