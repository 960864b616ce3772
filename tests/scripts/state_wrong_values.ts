const codes = [];
const circle: any = {};
circle.self = circle;
for (const value of [{ deep: [10n] }, circle, () => 1]) {
  for (const write of [() => state.set("k", value), () => state.update("k", () => value)]) {
    try {
      await write();
    } catch (error) {
      codes.push({ code: error.code, message: error.message });
    }
  }
}
return { codes, keys: await state.keys() };
