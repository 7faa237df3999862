"""A fitted model as one file: a zip of `model.json`, arrays (npy), boosters (XGBoost's JSON) and a digest over all.

The members are stored, not compressed: the bytes are the same on every machine, and no member can unpack to more than
the file has. Not skops 0.14: its trusted-types check was bypassed three times in 2025 (CVE-2025-54412, -54413, -54886),
it allocates the memory that an array's header claims, and it needs every class of ours named at each load.
"""

import hashlib
import io
import json
import zipfile
from typing import Any

from crosswind.data.schema.errors import MalformedError
from crosswind.data.store.model_files import BYTES_MAX
from crosswind.models.registry.values import Decoder, Encoder, Members

FORMAT = 1
MODEL, DIGEST = "model.json", "digest"
EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time in a zip file


def write_model(model: object) -> bytes:
    """Return the model's file, equal bytes for equal models. Raises: InvalidInputError naming what cannot be saved."""
    encoder = Encoder()
    document = {"format": FORMAT, "model": encoder.encode(model)}
    text = json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
    members = {MODEL: text, **encoder.members}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, content in {**members, DIGEST: _digest(members).encode()}.items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), content)
    return stream.getvalue()


def read_model(content: bytes) -> Any:
    """The model of a file. Raises: MalformedError for one that is damaged, of a later format, or not ours."""
    members = _members(content)
    if members.pop(DIGEST, b"") != _digest(members).encode():
        raise MalformedError("its content is not what its digest says")
    try:
        document = json.loads(members[MODEL])
    except (KeyError, ValueError, RecursionError) as error:
        raise MalformedError(f"{MODEL}: expected JSON: {str(error)[:120]}") from error
    version = document.get("format") if isinstance(document, dict) else None
    if version != FORMAT or "model" not in document:
        raise MalformedError(f"format {str(version)[:40]}: expected {FORMAT}, which this version of Crosswind knows")
    return Decoder(members).decode(document["model"])


def _members(content: bytes) -> Members:
    if len(content) > BYTES_MAX:
        raise MalformedError(f"{len(content)} bytes, expected at most {BYTES_MAX}")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            listed = archive.infolist()
            _check(listed, len(content))
            return {member.filename: archive.read(member) for member in listed}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, OSError) as error:
        raise MalformedError(f"expected a whole zip file: {error}") from error


def _check(listed: list[zipfile.ZipInfo], size_bytes: int) -> None:
    names = [member.filename for member in listed]
    if len(set(names)) < len(names):
        raise MalformedError("a member is in it twice")
    if any(member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size for member in listed):
        raise MalformedError("a member is compressed, expected stored ones")
    if sum(member.file_size for member in listed) > size_bytes:  # members that share their bytes
        raise MalformedError("its members are larger than the file")


def _digest(members: Members) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(members.items()):
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()
