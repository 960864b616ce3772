raise {"reason": "just because", "code": "TIMEOUT"}
