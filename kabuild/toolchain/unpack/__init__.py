"""Archives to trees, with every entry distrusted: an archive is data from a network."""
