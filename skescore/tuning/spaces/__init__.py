"""Search spaces: the hyper-parameters of every extractor, their ranges, and what to try first."""

__all__: list[str] = []
