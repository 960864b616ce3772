# Reports the files that were not there at the last run: `state` keeps what is known.
directory = inputs["directory"]
listing = await tools.files.list_directory(path=directory)
names = sorted(line.removeprefix("[FILE] ") for line in listing["content"].splitlines() if line.startswith("[FILE] "))

known = await state.get(f"known:{directory}", [])
await state.set(f"known:{directory}", names)
{"files": len(names), "new": [name for name in names if name not in known]}
