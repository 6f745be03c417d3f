"""The Spark engine: the only importer of pyspark."""
