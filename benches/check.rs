//! The cost of the check before a run: a script of 40 lines with twelve calls, all of them right.
//!
//! Ids are `check/<language>`. It is [`Usage::check_time`](cx::Usage::check_time) of runs whose schemas are
//! compiled already, as those of a server are. The script makes none of its calls: it returns first.

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use cx::{Executor, Language, Script};
use futures::executor::block_on;
use serde_json::{Value, json};

fn executor() -> Executor {
    let schema = json!({
        "type": "object",
        "properties": {
            "owner": { "type": "string" },
            "repo": { "type": "string" },
            "state": { "enum": ["open", "closed"] },
            "labels": { "type": "array", "items": { "type": "string" } },
        },
        "required": ["owner", "repo"],
        "additionalProperties": false,
    });
    let echo = |arguments: Value| async move { Ok::<_, String>(arguments) };
    let mut builder = Executor::builder().warm_instances(2);
    for tool in ["list_issues", "list_pulls", "get_file", "search"] {
        builder = builder.tool(&format!("github.{tool}"), schema.clone(), echo);
    }
    builder.build().expect("an executor")
}

/// 40 lines in either language.
fn source(language: Language) -> String {
    let mut lines: Vec<String> = Vec::new();
    for number in 0..4 {
        if language == Language::Python {
            lines.push(format!(
                "issues{number} = await tools.github.list_issues(owner='a', repo='b', state='open')"
            ));
            lines.push(format!(
                "pulls{number} = await tools.github.list_pulls(owner='a', repo=str({number}))"
            ));
            lines.push(format!(
                "names{number} = [pull['title'].strip() for pull in pulls{number} if pull.get('open')]"
            ));
            lines.push(format!("if len(names{number}) > 3:"));
            lines.push("    print('many')".to_owned());
            lines.push(format!("for name in names{number}:"));
            lines.push(format!("    print(name.upper(), {number} * 7 + len(name))"));
            lines.push(format!(
                "found{number} = await tools.github.search(owner='a', repo='b', labels=['x', 'y'])"
            ));
            lines.push(format!("total{number} = sum(len(name) for name in names{number})"));
        } else {
            lines.push(format!("const issues{number} = await tools.github.listIssues({{ owner: 'a', repo: 'b', state: 'open' }});"));
            lines.push(format!(
                "const pulls{number} = await tools.github.listPulls({{ owner: 'a', repo: `${{{number}}}` }});"
            ));
            lines.push(format!("const names{number} = pulls{number}.filter((pull) => pull.open).map((pull) => pull.title.trim());"));
            lines.push(format!("if (names{number}.length > 3) {{"));
            lines.push("  console.log('many');".to_owned());
            lines.push("}".to_owned());
            lines.push(format!(
                "for (const name of names{number}) console.log(name.toUpperCase(), {number} * 7);"
            ));
            lines.push(format!("const found{number} = await tools.github.search({{ owner: 'a', repo: 'b', labels: ['x', 'y'] }});"));
            lines.push(format!(
                "const total{number} = names{number}.reduce((sum, name) => sum + name.length, 0);"
            ));
        }
    }
    let first = match language {
        Language::Python => "if inputs is None:\n    return 1\nx = 1\ny = 2",
        _ => "if (input === null) return 1;\nconst x = 1;\nconst y = 2;\nconst z = [x, y];",
    };
    let text = format!("{first}\n{}\n", lines.join("\n"));
    assert_eq!(text.lines().count(), 40);
    text
}

fn benches(criterion: &mut Criterion) {
    let executor = executor();
    let mut group = criterion.benchmark_group("check");
    group.sample_size(50);
    for (name, language) in [("typescript", Language::TypeScript), ("python", Language::Python)] {
        let source = source(language);
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|count| {
                let mut total = Duration::ZERO;
                for _ in 0..count {
                    block_on(executor.warm(language)).expect("an engine");
                    let script = match language {
                        Language::Python => Script::python(&*source),
                        _ => Script::typescript(&*source),
                    };
                    let result =
                        block_on(executor.run(script.input(Value::Null))).expect("the executor works");
                    assert!(result.error().is_none(), "{}", result.to_json());
                    total += result.usage.check_time;
                }
                total
            });
        });
    }
    group.finish();
}

criterion_group!(check, benches);
criterion_main!(check);
