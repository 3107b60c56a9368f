"""The vocabulary of judging, shared by rules, gates and compilers. Standard library only."""
