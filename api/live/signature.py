"""Signatures of what webhooks are sent, so that a receiver knows who sent it and when.

Source: Standard Webhooks, github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping

PREFIX = "whsec_"
SECRET_BYTES = 32


def new_secret() -> str:
    """Return a random secret as the scheme writes it."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def signed_headers(secret: str, message_id: str, moment_seconds: int, body: bytes) -> Mapping[str, str]:
    """Return the header fields of a message; the signature covers its id, its time and its body."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{message_id}.{moment_seconds}.".encode() + body
    signature = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return {"webhook-id": message_id, "webhook-timestamp": str(moment_seconds), "webhook-signature": f"v1,{signature}"}
