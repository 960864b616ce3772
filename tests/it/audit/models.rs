//! The lines of the trail about a script's questions to a language model.

use cx::audit::{AuditOptions, AuditReader};
use cx::{Executor, ProviderKind, Script};
use serde_json::{Map, Value, json};

use crate::support::provider::{FakeProvider, Reply};

const QUESTION: &str = "a question that no other user may read";
const ANSWER: &str = "write to someone@example.com";

/// Each question is in the trail before it is sent and after its answer: its run, its number, hashes, the model, the
/// tokens, the outcome, and the findings of the content filter.
#[test]
fn each_question_to_a_model_is_in_the_trail_without_its_text() {
    let provider = FakeProvider::start(ProviderKind::OpenAi, |asked| match asked.prompt.as_str() {
        "fails" => Reply::Status(500, "", "no".to_owned()),
        _ => Reply::Text(ANSWER.to_owned()),
    });
    let directory = tempfile::tempdir().unwrap();
    let options = AuditOptions::new(directory.path().join("trail"));
    let executor =
        Executor::builder().llm(provider.options()).audit(options.clone()).warm_instances(1).build().unwrap();
    let source = format!(
        "await llm.ask('{QUESTION}'); await llm.ask('fails').catch(() => 0);
        for await (const piece of llm.ask('in pieces', {{ stream: true }}));"
    );
    let result = executor.run_blocking(Script::typescript(source)).unwrap();
    assert_eq!(result.error(), None);
    futures::executor::block_on(executor.close());
    let mut lines: Vec<Map<String, Value>> = Vec::new();
    let mut reader = AuditReader::new(&options.directory);
    while let Some(line) = reader.next_line(true).unwrap() {
        for secret in [QUESTION, ANSWER, "someone@example.com"] {
            assert!(!line.text.contains(secret), "{}", line.text);
        }
        lines.push(line.fields.unwrap());
    }
    let run = lines.iter().find(|line| line["event"] == "run.started").unwrap()["run"].clone();
    let of = |event: &str| -> Vec<&Map<String, Value>> {
        lines.iter().filter(|line| line["event"] == event && line["run"] == run).collect()
    };
    let (will, did) = (of("model.will"), of("model.did"));
    assert_eq!((will.len(), did.len()), (3, 3), "{lines:?}");
    for (number, line) in will.iter().enumerate() {
        assert_eq!(
            (&line["request"], &line["model"]),
            (&json!(number + 1), &json!("fake-model")),
            "{line:?}"
        );
        assert_eq!(line["messagesSha256"].as_str().unwrap().len(), 64, "{line:?}");
    }
    let [first, second, third] = did[..] else { panic!("{did:?}") };
    assert_eq!((&first["request"], &first["outcome"]), (&json!(1), &json!("ok")));
    assert_eq!(first["answerSha256"].as_str().unwrap().len(), 64);
    let tokens = first["inputTokens"].as_u64().unwrap() + first["outputTokens"].as_u64().unwrap();
    assert_eq!(tokens, 8 + 3);
    assert!(first["durationUs"].as_u64().unwrap() > 0 && first["at"].is_string());
    assert_eq!(first["violations"], json!(["email"]));
    assert_eq!(second["outcome"], "failed");
    assert!(second["code"].is_string() && second.get("answerSha256").is_none(), "{second:?}");
    // The same answer as a stream.
    for field in ["outcome", "answerSha256", "violations"] {
        assert_eq!(third[field], first[field], "{field}: {third:?}");
    }
}
