"""Words for an object store that refuses or does not answer: the setting, the store's answer, and what to try."""

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.lake_address import LAKE, LakeAddress

EXPECTED = "expected an S3 endpoint, its region, an existing bucket, and rights to list, read, write and delete in it"
REFUSED = re.compile(
    "ACCESS_DENIED|NO_SUCH_BUCKET|RESOURCE_NOT_FOUND|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|EXPIRED_TOKEN|MISSING_AUTHENTICATION"
    "|HTTP status (30.|40[0-3])"
)
WHERE = re.compile("^When .*? in bucket '[^']*': ")  # which we say ourselves, and more shortly
RIGHTS = re.compile("ACCESS_DENIED|ACCESS_KEY|SIGNATURE|EXPIRED|AUTHENTICATION|HTTP status 40[13]")
ELSEWHERE = re.compile("HTTP status (30.|400)|[Rr]egion")
ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")


def region_of(address: LakeAddress) -> str | None:
    """Return the region that the address or the environment names."""
    return address.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")


def endpoint_of(address: LakeAddress) -> tuple[str | None, str | None]:
    """Return scheme and authority of the endpoint, None for those of the region. Raises: InvalidInputError."""
    if address.endpoint is not None:
        return address.scheme, address.endpoint
    variable = next((name for name in ENDPOINTS if os.environ.get(name)), None)
    if variable is None:
        return address.scheme, None
    parts = urlsplit(os.environ[variable])
    if parts.scheme not in ("http", "https") or not parts.netloc or "@" in parts.netloc:
        said = re.sub("[^/]*@", "…@", os.environ[variable])
        raise InvalidInputError(f"{variable} is {said!r:.80}, expected http://HOST:PORT or https://HOST")
    return address.scheme or parts.scheme, parts.netloc


def reason_of(error: Exception) -> str:
    """Return what the store or the network says, in short."""
    return f"{WHERE.sub('', ' '.join(str(error).split())):.300}"


def refusal(address: LakeAddress, failure: str, reason: str) -> str:
    """Return a paragraph about an address that does not work; it holds no secret."""
    return f"{LAKE} is {address}, {_place(address)}: {failure}: {reason}; {EXPECTED}; try {_advice(address, reason)}"


def _place(address: LakeAddress) -> str:
    region = region_of(address) or "none"
    scheme, endpoint = endpoint_of(address)
    return f"at {scheme or 'https'}://{endpoint}, region {region}" if endpoint else f"at AWS, region {region}"


def _advice(address: LakeAddress, reason: str) -> str:
    if "NO_SUCH_BUCKET" in reason:
        return f"to create the bucket {address.bucket}, or to correct its name"
    if RIGHTS.search(reason):
        return _rights(address)
    if ELSEWHERE.search(reason):
        return "the bucket's own region, as AWS_REGION or region=... in the address, and its endpoint"
    scheme, endpoint = endpoint_of(address)
    if endpoint is None:
        return "to reach the region's endpoint from here; for stores other than AWS set AWS_ENDPOINT_URL"
    return f"`curl -i {scheme or 'https'}://{endpoint}` from here, and correct AWS_ENDPOINT_URL or endpoint_override"


def _rights(address: LakeAddress) -> str:
    if address.access_key is None and not has_credentials():
        return "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: there are no credentials"
    return "another access key, or s3:ListBucket, GetObject, PutObject and DeleteObject for this one"


def has_credentials() -> bool:
    """Return whether the environment or a file of this user names some; a machine may still have its own."""
    named = os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or Path("~/.aws/credentials").expanduser()
    return any(os.environ.get(name) for name in KEYS) or Path(named).is_file()
