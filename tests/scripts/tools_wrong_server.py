return await tools.mok.echo()
