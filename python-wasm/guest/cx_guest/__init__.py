"""The Python half of the component."""
