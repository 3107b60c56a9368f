"""What judging means, for rules, gates and compilers alike. It needs the standard library only."""
