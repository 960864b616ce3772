import doctest
import pdb


def double(number):
    """
    >>> double(2)
    4
    """
    return 2 * number


values = []
for use in (pdb.set_trace, pdb.post_mortem, lambda: pdb.run("1 + 1"), breakpoint):
    try:
        use()
    except EOFError as error:
        values.append(str(error))
# It has a debugger, which it does not use.
values.append(doctest.testmod().failed)
values
