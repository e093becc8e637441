"""Never executed: the analysis tests look at targets, not at what they would build."""
