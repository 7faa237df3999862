"""ID tokens: their signature by one of the provider's keys, and their claims."""

from collections.abc import Mapping
from typing import Any

from crosswind.api.access.caller import UnauthorizedError
from crosswind.api.access.oidc.provider import Json, Provider

LEEWAY_SECONDS = 60
# Signatures of private keys alone. A secret that both sides have (HS256) could be one of the public keys, as text.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
KEY_TYPES = frozenset({"RSA", "EC", "OKP"})


def claims_of(provider: Provider, tokens: Mapping[str, Any], nonce: str) -> Json:
    """Return the claims of the ID token that came with an access token, once everything about it is right.

    Raises: UnauthorizedError, UnavailableError. Source: OpenID Connect Core 1.0, section 3.1.3.7.
    """
    from authlib.oidc.core import CodeIDToken  # noqa: PLC0415 - heavy: needed when somebody logs in
    from joserfc.errors import JoseError  # noqa: PLC0415

    settings = provider.settings
    try:
        token = _decoded(provider, str(tokens.get("id_token", "")))
        claims = CodeIDToken(
            token.claims,
            token.header,
            options={
                "iss": {"essential": True, "value": settings.issuer},
                "aud": {"essential": True, "value": settings.client_id},
                "sub": {"essential": True},
            },
            params={"nonce": nonce, "client_id": settings.client_id, "access_token": tokens.get("access_token")},
        )
        claims.validate(leeway=LEEWAY_SECONDS)
    except (JoseError, ValueError, TypeError, KeyError) as error:
        raise UnauthorizedError(f"{settings.shown} sent an ID token that does not hold: {error}"[:200]) from error
    return dict(claims)


def _decoded(provider: Provider, text: str) -> Any:
    """Return the token; a key that is not known yet is looked for once, as providers change theirs."""
    from joserfc import jwt  # noqa: PLC0415 - heavy
    from joserfc.errors import BadSignatureError, InvalidKeyIdError  # noqa: PLC0415

    allowed = _algorithms(provider)
    try:
        return jwt.decode(text, _key_set(provider.keys()), allowed)
    except (BadSignatureError, InvalidKeyIdError, ValueError):
        return jwt.decode(text, _key_set(provider.keys(newer=True)), allowed)


def _algorithms(provider: Provider) -> list[str]:
    """Return what the provider signs with, of what is safe; RS256 where it does not say."""
    said = provider.metadata().get("id_token_signing_alg_values_supported") or ["RS256"]
    return [name for name in ALGORITHMS if name in said]


def _key_set(document: Json) -> Any:
    from joserfc.jwk import KeySet  # noqa: PLC0415 - heavy

    keys = document.get("keys")
    usable = [key for key in keys if _signs(key)] if isinstance(keys, list) else []
    return KeySet.import_key_set({"keys": usable})


def _signs(key: object) -> bool:
    return isinstance(key, dict) and key.get("kty") in KEY_TYPES and key.get("use", "sig") == "sig"
