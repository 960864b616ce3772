export { a } from "mcp:s"
