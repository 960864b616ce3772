def double(number):
    """Returns twice the number."""
    return 2 * number


help(double)
help("bisect.bisect")
try:
    help("zebra.stripes")
except McpToolError as error:
    print(error)
