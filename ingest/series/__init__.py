"""Series of Prometheus and OpenTelemetry, from files, an API or senders, as rows of metric sets."""
