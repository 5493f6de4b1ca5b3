"""Rule sets become other languages, for people, databases and programs: one file per language."""

__all__: list[str] = []
