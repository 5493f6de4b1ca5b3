"""Where studies are kept, and which of their trials are still running."""

from skescore.tuning.storage._storages import (
    HEARTBEAT,
    RETRIED,
    RETRY_OF,
    Heartbeat,
    announce_worker,
    is_storage_failure,
    open_storage,
    patiently,
    retry_stale,
    storage_name,
)

__all__ = [
    "HEARTBEAT",
    "RETRIED",
    "RETRY_OF",
    "Heartbeat",
    "announce_worker",
    "is_storage_failure",
    "open_storage",
    "patiently",
    "retry_stale",
    "storage_name",
]
