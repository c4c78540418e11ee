"""What is built on a classifier."""
