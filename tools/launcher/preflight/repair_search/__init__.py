"""The nearest legal settings for a plan whose geometry or batches are refused."""
