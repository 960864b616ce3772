import x from "mcp:s" with { type: "json" }; x
