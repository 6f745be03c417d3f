"""The local engine: the same hosts as on Spark, in one process, without a JVM."""
