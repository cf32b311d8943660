"""Other ways to compute a case: what fusionq is measured against."""
