"""A leaderboard of many bundles as a directory of static pages."""
