"""Fewer and shorter rules: exactly the same predictions, or a tolerance on given rows."""

__all__: list[str] = []
