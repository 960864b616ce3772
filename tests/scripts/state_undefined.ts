await state.set("k", undefined);
