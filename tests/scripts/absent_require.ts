const fs = require("fs");
return fs.readFileSync("/etc/passwd");
