const early = (() => {
    try {
        new A();
    } catch (error) {
        return String(error);
    }
    class A {}
})();
class B {
    static set() {
        (B as any) = 1;
    }
    static own() {
        return B;
    }
}
const inner = (() => {
    try {
        return B.set();
    } catch (error) {
        return String(error);
    }
})();
const first = B;
(B as any) = 5;
return [early, inner, first.own() === first, B, first.name];
