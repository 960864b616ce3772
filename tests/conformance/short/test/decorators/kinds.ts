// What a decorator is given: the value, and a context that says what is decorated.

const seen: any[] = [];
const note = (value: any, context: any) => {
  const { kind, name, static: isStatic, private: isPrivate, access } = context;
  seen.push([kind, name, isStatic, isPrivate, access && Object.keys(access).join(), typeof value]);
};

@note
class A {
  @note method() {}
  @note static method() {}
  @note get getter() { return 1; }
  @note set setter(_: number) {}
  @note field = 1;
  @note static field = 1;
  @note accessor auto = 1;
  @note #method() {}
  @note static #fixedMethod() {}
  @note get #getter() { return 1; }
  @note set #setter(_: number) {}
  @note #field = 1;
  @note static #fixedField = 1;
  @note accessor #auto = 1;
  @note static accessor #fixed = 1;
  @note ["computed" + 1]() {}
  @note 12() {}
}

assert.same(seen, [
  ["method", "method", true, false, "has,get", "function"],
  ["method", "#fixedMethod", true, true, "has,get", "function"],
  ["accessor", "#fixed", true, true, "has,get,set", "object"],
  ["method", "method", false, false, "has,get", "function"],
  ["getter", "getter", false, false, "has,get", "function"],
  ["setter", "setter", false, false, "has,set", "function"],
  ["accessor", "auto", false, false, "has,get,set", "object"],
  ["method", "#method", false, true, "has,get", "function"],
  ["getter", "#getter", false, true, "has,get", "function"],
  ["setter", "#setter", false, true, "has,set", "function"],
  ["accessor", "#auto", false, true, "has,get,set", "object"],
  ["method", "computed1", false, false, "has,get", "function"],
  ["method", "12", false, false, "has,get", "function"],
  ["field", "field", true, false, "has,get,set", "undefined"],
  ["field", "#fixedField", true, true, "has,get,set", "undefined"],
  ["field", "field", false, false, "has,get,set", "undefined"],
  ["field", "#field", false, true, "has,get,set", "undefined"],
  ["class", "A", undefined, undefined, undefined, "function"],
]);
