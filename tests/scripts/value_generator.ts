async function* pages() {
  yield 1;
}
return { pages: new Map([["all", pages()]]) };
