"""The heads that copy labels: find · control · figure."""
