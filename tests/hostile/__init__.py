"""What a hostile or unlucky world does to kabuild, by the thousand; see README.md."""
