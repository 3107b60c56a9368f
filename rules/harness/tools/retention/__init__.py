"""What is left of a speedup on configs that were drawn."""
