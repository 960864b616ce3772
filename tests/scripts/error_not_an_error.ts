throw { reason: "just because", code: "TIMEOUT" };
