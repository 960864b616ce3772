await state.update("k", () => state.update("k", () => 1));
