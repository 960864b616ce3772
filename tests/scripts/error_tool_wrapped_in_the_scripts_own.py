class SyncFailed(Exception):
    pass


async def sync(table):
    try:
        await mock.fail(message=f"no table {table}")
    except McpToolError as error:
        raise SyncFailed(f"{table}: {error}")


await sync("users")
