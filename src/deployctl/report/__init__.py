"""Events, plans and errors as lines for a person or as JSON. Nothing else formats for reading."""
