"""Which candidate wins for which weights of errors and rules, and how sure that is."""

__all__: list[str] = []
