"""Storages of studies: opening, heartbeats, retries and identities of searches."""

from skescore.tuning.storage._heartbeats import (
    HEARTBEAT,
    POSITION,
    RETRIED,
    RETRY_OF,
    Heartbeat,
    announce_worker,
    retry_stale,
)
from skescore.tuning.storage._identity import check_identity, search_identity, stable_text
from skescore.tuning.storage._storages import (
    call_with_retries,
    is_storage_failure,
    open_storage,
    storage_name,
)

__all__ = [
    "HEARTBEAT",
    "POSITION",
    "RETRIED",
    "RETRY_OF",
    "Heartbeat",
    "announce_worker",
    "call_with_retries",
    "check_identity",
    "is_storage_failure",
    "open_storage",
    "retry_stale",
    "search_identity",
    "stable_text",
    "storage_name",
]
