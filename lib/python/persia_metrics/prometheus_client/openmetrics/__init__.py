"""The OpenMetrics format."""
