"""The report of a fusion: model, text, advice, pictures."""
