import { ecko } from "mcp:mock";
return ecko;
