"""Login of people at an OpenID Connect provider: authorization code with PKCE."""
