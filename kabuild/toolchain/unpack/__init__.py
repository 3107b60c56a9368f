"""Unpacks archives into trees. Archives come from a network, so no entry is trusted."""
