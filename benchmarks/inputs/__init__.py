"""What several benchmark scripts measure on."""
