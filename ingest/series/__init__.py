"""Series as Prometheus and OpenTelemetry have them, in files, over an API or sent, as rows of metric sets."""
