const before = 1;
import { echo } from "mcp:mokk";
return echo;
