const issues = await github.list_issues({ state: "open" });
return issues;
