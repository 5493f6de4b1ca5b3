"""Where studies are kept, and which of their trials are still running."""

from skescore.tuning.storage._heartbeats import RETRY_OF, Heartbeat, retry_stale
from skescore.tuning.storage._storages import open_storage, storage_name

__all__ = ["RETRY_OF", "Heartbeat", "open_storage", "retry_stale", "storage_name"]
