"""What can go wrong when records are sent, in words."""

from __future__ import annotations

from typing import Any

from headwater.connectors.kafka.connection import confluent_kafka, is_denied

RIGHTS = (
    "allow the client to write to the topic, and to use the transactional ids and groups that begin with 'headwater-'"
)
_KEY_SHOWN = 100
"""So many bytes of a key are shown."""


class SendError(Exception):
    """Why records could not be sent, and what to do."""

    def __init__(self, why: str, action: str, *, is_fenced: bool = False, is_final: bool = False) -> None:
        super().__init__(f"{why}; {action}")
        self.why, self.action = why, action
        self.is_fenced = is_fenced
        """Whether somebody else sends under the same name."""
        self.is_final = is_final or is_fenced
        """Whether sending the same again would fail again."""


class Stuck(SendError):
    """The client does not come back from a call; another one may."""


def record_named(key: bytes | None) -> str:
    """A record, for people."""
    return "a record without key" if key is None else f"the record with key {key[:_KEY_SHOWN]!r}"


def too_large(key: bytes | None, size_bytes: int, whose: str) -> SendError:
    """A record that is larger than a limit."""
    return SendError(
        f"{record_named(key)} has {size_bytes} bytes, more than {whose} limit",
        "raise both: options={'message.max.bytes': …} here, and max.message.bytes of the topic, or message.max.bytes of "
        "the brokers",
        is_final=True,
    )


def may_pass(error: Any) -> bool:
    """Whether the same call can do better a moment later: brokers start, and coordinators move."""
    kinds = confluent_kafka().KafkaError
    if error.fatal() or error.txn_requires_abort():
        return False
    return error.retriable() or error.code() in {
        kinds.NOT_COORDINATOR,
        kinds.COORDINATOR_NOT_AVAILABLE,
        kinds.COORDINATOR_LOAD_IN_PROGRESS,
        kinds.UNSTABLE_OFFSET_COMMIT,
        kinds.REQUEST_TIMED_OUT,
        kinds._TIMED_OUT,
        kinds._TRANSPORT,
        kinds._ALL_BROKERS_DOWN,
    }


def explain(error: Any) -> SendError:
    """What an error of librdkafka means for somebody who sends."""
    kinds, code = confluent_kafka().KafkaError, error.code()
    if code in (kinds._FENCED, kinds.PRODUCER_FENCED, kinds.INVALID_PRODUCER_EPOCH):
        return SendError(
            "another run of this job has taken over, or the transaction took longer than timeout=",
            "see that the job runs once; if it does, raise timeout=",
            is_fenced=True,
        )
    if is_denied(error) or code in (kinds._AUTHENTICATION, kinds.SASL_AUTHENTICATION_FAILED):
        return SendError(f"the cluster does not allow it: {error.str()}", RIGHTS, is_final=True)
    if code == kinds.INVALID_TRANSACTION_TIMEOUT:
        return SendError(
            "timeout= is longer than the cluster's transaction.max.timeout.ms allows", "make it shorter", is_final=True
        )
    if code in (kinds.UNKNOWN_TOPIC_OR_PART, kinds._UNKNOWN_TOPIC, kinds._UNKNOWN_PARTITION):
        return SendError(
            f"the topic, or a partition that a row is for, is not there: {error.str()}",
            "make it, or mend partition=",
            is_final=True,
        )
    return SendError(str(error.str()), "see what the cluster and the logger 'headwater.kafka' say")
