"""Models of a store whose lake is in a bucket: a version that one server trained answers at every other."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.data.lake.objects.test_backup import elsewhere
from tests.models.registry.models import trained

from crosswind.data.backup.store import back_up, restore
from crosswind.data.lake.objects.bucket import Bucket
from crosswind.data.lake.objects.sweep import sweep
from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.lake_address import LakeAddress
from crosswind.data.store.store import Store
from crosswind.models.registry.registry import Registry

NAME, TWO_DAYS = "step_seconds", 2 * 86_400_000_000_000


def test_a_version_answers_at_every_server_and_is_in_the_backup_of_any(
    store: Store, another: Callable[[], Store], address: LakeAddress, tmp_path: Path
) -> None:
    made, other = trained(), another()
    record = Registry(store).register(NAME, made.model, made.evidence)
    sweep(store.catalog, Bucket(address), lists_all=lambda _: True, now_ns=time.time_ns() + TWO_DAYS)
    draft = other.home / "models" / record.file_name  # of a training that was killed before it registered anything
    draft.parent.mkdir(parents=True)
    draft.write_bytes(b"draft")
    assert Registry(other).load(NAME, 1).record == record
    draft.unlink()
    back_up(other, tmp_path / "backup.tar")
    further = elsewhere(address, "further")
    restore(tmp_path / "backup.tar", tmp_path / "restored", lake=further)
    (tmp_path / "restored/models" / record.file_name).unlink()
    with Store.open(tmp_path / "restored", lake=further) as restored:
        assert Registry(restored).load(NAME, 1).record == record


def test_an_object_of_a_model_that_is_gone_or_another_is_named(
    store: Store, another: Callable[[], Store], address: LakeAddress, tmp_path: Path
) -> None:
    made, other, bucket = trained(), another(), Bucket(address)
    Registry(store).register(NAME, made.model, made.evidence)
    key = next(one.key for one in bucket.listing() if one.key.startswith("models/"))
    (tmp_path / "another").write_bytes(b"another")
    bucket.put(key, tmp_path / "another")
    with pytest.raises(MalformedError, match=f"object {key} is not what was registered"):
        Registry(other).load(NAME, 1)
    bucket.remove([key])
    with pytest.raises(UnavailableError, match=f"object {key} cannot be read: it is not there"):
        Registry(other).load(NAME, 1)
    assert Registry(store).load(NAME, 1).record.version == 1
