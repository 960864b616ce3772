const text = fs.readFileSync("/tmp/name", "utf8");
return text;
