// Type arguments that begin with `<<`, where nothing is called or the call is optional.

const identity = <T,>(value?: T) => value;
const plain = identity<<T>(value: T) => T>;
assert.same([plain === identity, identity?.<<T>() => T>(1 as any), identity<<T>() => T>?.(2 as any)], [true, 1, 2]);
const decorate = <T,>() => (type: any) => { type.decorated = true; };
@decorate<<T>(value: T) => void>() class G { static decorated = false; }
assert.same(new G() instanceof G, true);
