"""Spark: finding a Java, a session in a process of its own, and replay as Spark jobs."""
