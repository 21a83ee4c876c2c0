"""Placeholder."""
def main(base, folder):
    return 0
