await state.update("k", lambda _: state.update("k", lambda _: 1))
