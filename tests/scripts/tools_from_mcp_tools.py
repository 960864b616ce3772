import mcp_tools.mock
from mcp_tools import mock as renamed
from mcp_tools import other_server
from mcp_tools.mock import echo, with_dashes_and_dots

import mcp_tools

return [
    await echo(a=1),
    await with_dashes_and_dots(b=2),
    await other_server.read_file(c=3),
    await renamed.echo(d=4),
    await mcp_tools.mock.echo(e=5),
    await mcp_tools.other_server.read_file(f=6),
]
