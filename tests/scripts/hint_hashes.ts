return crypto.createHash("sha256").update("a").digest("hex");
