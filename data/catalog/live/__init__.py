"""Events of the catalog, and the webhooks that are sent them."""
