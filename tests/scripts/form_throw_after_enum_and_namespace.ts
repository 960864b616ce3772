enum E { A }
namespace N { export const a = 1 }
const o: any = null;
return o.missing
