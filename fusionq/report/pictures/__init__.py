"""Pictures of plans: what a list of submissions became."""
