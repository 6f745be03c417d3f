"""Kafka: records in, and epochs of records out, with Confluent's client over librdkafka."""
