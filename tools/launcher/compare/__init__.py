"""What differs between two launches, by field and by what it means. Pure."""
