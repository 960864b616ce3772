for (let index = 0; index < 1_100; index++) {
  await state.get("k");
}
return "more than 1,000 calls";
