const bytes = new TextEncoder().encode("a");
return await crypto.subtle.digest("SHA-256", bytes);
