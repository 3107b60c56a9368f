"""Layer 6: the command line, one module per command. ``click`` stays here."""
