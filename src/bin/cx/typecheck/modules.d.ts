// The modules of files, as scripts import them: those of Node that `fs` is.
declare module "node:fs/promises" {
  const files: CxFiles;
  export default files;
  export const readFile: CxFiles["readFile"];
  export const writeFile: CxFiles["writeFile"];
  export const appendFile: CxFiles["appendFile"];
  export const readdir: CxFiles["readdir"];
  export const mkdir: CxFiles["mkdir"];
  export const mkdtemp: CxFiles["mkdtemp"];
  export const rm: CxFiles["rm"];
  export const unlink: CxFiles["unlink"];
  export const rmdir: CxFiles["rmdir"];
  export const stat: CxFiles["stat"];
  export const lstat: CxFiles["lstat"];
  export const rename: CxFiles["rename"];
  export const copyFile: CxFiles["copyFile"];
  export const access: CxFiles["access"];
  export const truncate: CxFiles["truncate"];
  export const constants: CxFiles["constants"];
  export const promises: CxFiles["promises"];
}
declare module "fs/promises" {
  export * from "node:fs/promises";
  export { default } from "node:fs/promises";
}
declare module "node:fs" {
  export * from "node:fs/promises";
  export { default } from "node:fs/promises";
}
declare module "fs" {
  export * from "node:fs/promises";
  export { default } from "node:fs/promises";
}
