"""Where studies are kept, and which of their trials are still running."""

from skescore.tuning.storage._storages import (
    HEARTBEAT,
    RETRY_OF,
    Heartbeat,
    is_storage_failure,
    open_storage,
    retry_stale,
    storage_name,
)

__all__ = [
    "HEARTBEAT",
    "RETRY_OF",
    "Heartbeat",
    "is_storage_failure",
    "open_storage",
    "retry_stale",
    "storage_name",
]
