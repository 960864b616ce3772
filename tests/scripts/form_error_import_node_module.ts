import fs from "node:fs"; fs.readFileSync('x')
