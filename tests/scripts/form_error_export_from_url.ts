export * from "https://x/"
