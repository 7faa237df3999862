import pytest

from crosswind.data.lake.objects.bucket import Bucket
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.lake_address import CACHE_BYTES, LakeAddress
from crosswind.settings import Settings


def test_an_address_has_a_bucket_a_prefix_and_options() -> None:
    address = LakeAddress.of("s3://key:se%2Fcret@bucket/a/b/?region=eu-west-2&endpoint_override=host:9000&scheme=http")
    assert address == LakeAddress("bucket", "a/b", "eu-west-2", "host:9000", "http", "key", "se/cret")
    assert (str(address), address.cache_bytes) == ("s3://bucket/a/b", CACHE_BYTES)
    assert "cret" not in repr(address)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("s4://bucket/a", "CROSSWIND_LAKE is 's4://bucket/a', expected s3://BUCKET/PREFIX"),
        ("/srv/lake", "expected s3://BUCKET/PREFIX"),
        ("s3:///a", "expected the name of a bucket, not ''"),
        ("s3://b u/a", "expected the name of a bucket"),
        ("s3://bucket/a?regoin=x", "option 'regoin', expected region, endpoint_override, scheme"),
        (
            "s3://bucket/a?endpoint_override=http://h:9000",
            "endpoint_override 'http://h:9000', expected HOST or HOST:PORT",
        ),
        ("s3://bucket/a?scheme=ftp", "scheme 'ftp', expected http or https"),
        ("s3://key@bucket/a", "expected a secret after the access key"),
        ("s3://bucket/a/../b", "expected a prefix without empty parts"),
    ],
)
def test_a_wrong_address_is_named(text: str, said: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        LakeAddress.of(text)
    assert said in str(raised.value)


@pytest.mark.parametrize("text", ["s4://key:secret@bucket/a", "s3://bucket/a?endpoint_override=key:secret@host"])
def test_a_secret_is_in_no_message(text: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        LakeAddress.of(text)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("text", ["much", "-1", "0", "1.5", "²"])
def test_a_wrong_limit_of_copies_is_named(text: str) -> None:
    settings = Settings.from_environment({"CROSSWIND_LAKE": "s3://bucket", "CROSSWIND_LAKE_CACHE": text})
    with pytest.raises(InvalidInputError, match="CROSSWIND_LAKE_CACHE is"):
        assert settings.lake


def test_without_an_address_the_lake_is_a_folder() -> None:
    assert Settings.from_environment({}).lake is None


@pytest.mark.parametrize("url", ["minio:9000", "minio.example.org", "ftp://minio", "http://"])
def test_a_wrong_endpoint_of_the_environment_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    with pytest.raises(InvalidInputError, match=f"AWS_ENDPOINT_URL is '{url}', expected http://HOST:PORT"):
        Bucket(LakeAddress.of("s3://bucket")).content("object")
