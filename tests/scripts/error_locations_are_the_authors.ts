interface Unused { a: string }

// Wherever a script sees a stack trace, its locations are those of this file.
async function fails(): Promise<never> {

  await Promise.resolve()
  throw new TypeError("x")
}
try {
  await fails()
} catch (error) {
  console.log(error)
  const holder: { stack?: string } = {}
  Error.captureStackTrace(holder)
  const written = Object.assign(new Error("y"), { stack: "Error: y\n    at script.ts:1:1" })
  return { stack: error.stack, captured: holder.stack, written: written.stack }
}
