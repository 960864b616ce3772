import x = require("fs"); x
