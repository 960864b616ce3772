errors = []
for call in [
    lambda: state.get_sync(7),
    lambda: state.set_sync(None, 1),
    lambda: state.keys_sync(1),
    lambda: state.update_sync("k", 1),
]:
    try:
        call()
    except TypeError as error:
        errors.append(str(error))
return errors
