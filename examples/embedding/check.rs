//! Check scripts without running them.

use cx::{Error, Executor, Script};

/// Returns the line and the code of the first mistake in each script, or `None` for a script without one.
pub(crate) async fn example() -> Result<Vec<Option<(u32, &'static str)>>, Error> {
    let executor = Executor::builder().build()?;
    let scripts = [
        Script::typescript("const total: number = input.length;\nreturn total"),
        Script::typescript("const total = 1;\nconst total = 2"),
        Script::typescript("return [1, 2"),
    ];
    let mut found = Vec::new();
    for script in scripts {
        let findings = executor.check(script).await?.findings;
        found.push(findings.first().map(|error| (error.line.unwrap_or_default(), error.code.as_str())));
    }
    Ok(found)
}
