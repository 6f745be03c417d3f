"""Kafka: records in, with Confluent's client over librdkafka."""
