import path from "node:path"; path.join("x")
