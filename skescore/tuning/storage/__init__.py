"""Where studies are kept, and which of their trials are still running."""

from skescore.tuning.storage._storages import (
    RETRY_OF,
    Heartbeat,
    open_storage,
    retry_stale,
    storage_name,
)

__all__ = ["RETRY_OF", "Heartbeat", "open_storage", "retry_stale", "storage_name"]
