"""What it does."""

return __doc__
