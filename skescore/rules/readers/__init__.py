"""Other libraries' models and files become rule sets."""
