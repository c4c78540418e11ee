"""The heads that copy labels: mark · find · scores · control · figure."""
