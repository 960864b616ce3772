class Registry {
  static #entries = new Map<string, number>();
  static {
    Registry.#entries.set("a", 1);
  }
  static get(name: string) {
    return Registry.#entries.get(name) ?? null;
  }
}
using resource = { [Symbol.dispose]() { console.log("disposed"); } };
Registry.get("a");
