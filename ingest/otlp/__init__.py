"""Metrics as OpenTelemetry sends them (OTLP), as samples of series."""
