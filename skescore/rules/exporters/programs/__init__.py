"""Writers of rules as programs in languages with blocks in braces."""

from skescore.rules.exporters.programs._java import to_java
from skescore.rules.exporters.programs._javascript import to_javascript

__all__ = ["to_java", "to_javascript"]
