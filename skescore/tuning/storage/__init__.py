"""Where studies are kept, and which of their trials are still running."""

__all__: list[str] = []
