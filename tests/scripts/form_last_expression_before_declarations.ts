const x = 5;
x * 2
function helper() {}
interface I { a: 1 }
