"""Declaring: networks of streams and operators, their schemas, and where they run."""
