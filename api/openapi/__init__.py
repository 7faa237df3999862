"""The API's description in OpenAPI 3.1: words, refusals and examples of its operations."""
