"""Rule sets become other languages: for people, databases and programs."""
