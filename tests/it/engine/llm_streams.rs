//! Streamed answers that a script leaves before their end: the provider sees its connection closed while the script
//! goes on. THREATS 573.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cx::{
    ExecuteResult, Executor, ExecutorBuilder, Isolation, Language, Limits, ProviderKind, SaveRequest, Script,
    ScriptLibrary, ToolCallRecord, WorkerProcesses,
};
use serde_json::{Value, json};

use crate::support::provider::{FakeProvider, Reply};
use crate::support::{python, python_cache, wait_until};

/// A provider whose answers never end, and an executor whose scripts can wait until the provider is asked, and until it
/// has no open question any more.
fn stalled() -> (Executor, Arc<FakeProvider>) {
    let (builder, provider) = stalled_builder();
    (builder.build().unwrap(), provider)
}

fn stalled_builder() -> (ExecutorBuilder, Arc<FakeProvider>) {
    let provider = Arc::new(FakeProvider::start(ProviderKind::OpenAi, |asked| match asked.prompt.as_str() {
        "silent" => Reply::Silence,
        _ => Reply::Stalled("one two three four ".to_owned()),
    }));
    let (asked, closed) = (Arc::clone(&provider), Arc::clone(&provider));
    let builder = Executor::builder()
        .llm(provider.options())
        .cache_directory(python_cache())
        .tool("provider.asked", Value::Null, move |_: Value| {
            let provider = Arc::clone(&asked);
            async move {
                wait_until(|| provider.open() > 0).await;
                Ok::<_, String>("asked")
            }
        })
        .tool("provider.closed", Value::Null, move |_: Value| {
            let provider = Arc::clone(&closed);
            async move {
                wait_until(|| provider.open() == 0).await;
                Ok::<_, String>("closed")
            }
        });
    (builder, provider)
}

async fn check(executor: &Executor, script: impl Into<Script>, source: &str) {
    let result = executor.run(script).await.unwrap();
    assert_eq!(result.value(), Some(&json!("closed")), "{source}\n{:#}", result.to_json());
}

#[tokio::test]
async fn v_573_typescript_ends_the_request_of_an_answer_that_it_leaves() {
    let (executor, provider) = stalled();
    for leave in [
        "for await (const piece of answer) break;",
        "const first = async () => { for await (const piece of answer) return piece; }; await first();",
        "try { for await (const piece of answer) throw new Error(piece); } catch {}",
        "await answer.next(); await answer.return();",
    ] {
        let source = format!(
            "const answer = llm.ask('x', {{ stream: true }});
            {leave}
            return await tools.provider.closed({{}});"
        );
        check(&executor, Script::typescript(&*source), &source).await;
    }
    assert_eq!(provider.asked().len(), 4);
}

/// Python does not tell an iterator that a loop over it was left, so each way to leave one is tested.
#[tokio::test]
async fn v_573_python_ends_the_request_of_an_answer_that_it_leaves() {
    python().await;
    let (executor, provider) = stalled();
    let ways = [
        // With the loop as the only reference, and with another one.
        "async for piece in llm.ask('x', stream=True):\n    break",
        "answer = llm.ask('x', stream=True)\nasync for piece in answer:\n    break",
        "async def first():
    answer = llm.ask('x', stream=True)
    async for piece in answer:
        return piece
await first()",
        "answer = llm.ask('x', stream=True)
try:
    async for piece in answer:
        raise ValueError(piece)
except ValueError as error:
    kept = error",
        "answer = llm.ask('x', stream=True)\nawait anext(answer)\nawait answer.aclose()",
        "answer = llm.ask('x', stream=True)\nawait anext(answer)\ndel answer",
        "iterator = aiter(llm.ask('x', stream=True))\nawait anext(iterator)\ndel iterator",
        // Cancelled while it waits for a piece, and for the answer to begin.
        "async def read():
    async for piece in llm.ask('x', stream=True):
        pass
task = asyncio.create_task(read())
await tools.provider.asked()
task.cancel()",
        "answer = llm.ask('silent', stream=True)
task = asyncio.create_task(answer.__anext__())
await tools.provider.asked()
task.cancel()",
        "for piece in llm.ask_sync('x', stream=True):\n    break",
        "answer = llm.ask_sync('x', stream=True)\nfor piece in answer:\n    break",
        "answer = llm.ask_sync('x', stream=True)
try:
    for piece in answer:
        raise ValueError(piece)
except ValueError as error:
    kept = error",
        "answer = llm.think_sync([{'role': 'user', 'content': 'x'}], stream=True)\nnext(answer)\nanswer.close()",
        "two = list(itertools.islice(llm.ask_sync('x', stream=True), 2))",
    ];
    for leave in ways {
        let source = format!("import asyncio, itertools\n{leave}\nawait tools.provider.closed()");
        check(&executor, Script::python(&*source), &source).await;
    }
    // The two that are cancelled may be cancelled before their question is read.
    assert!(provider.asked().len() >= ways.len() - 2);
}

/// A saved script that a script calls ends like a run of its own: its open streams do not stay open for as long as its
/// caller runs.
#[tokio::test]
async fn v_573_the_end_of_a_called_script_ends_its_requests() {
    let directory = tempfile::tempdir().unwrap();
    let library = ScriptLibrary::of_folder(directory.path().join("scripts"));
    let source = "// Reads the first word.
        export default async () => (await llm.ask('x', { stream: true }).next()).value";
    library.save(SaveRequest::new("first", Language::TypeScript, source)).unwrap();
    let (builder, _provider) = stalled_builder();
    let executor = builder.scripts(library).build().unwrap();
    let source = "const first = await scripts.first({}); return await tools.provider.closed({})";
    check(&executor, Script::typescript(source), source).await;
}

/// Where scripts are executed in worker processes, the executor has the connection to the provider.
#[tokio::test(flavor = "multi_thread")]
async fn v_573_a_worker_process_ends_the_request_of_an_answer_that_its_script_leaves() {
    python().await;
    let (builder, _provider) = stalled_builder();
    let workers =
        WorkerProcesses { program: Some(env!("CARGO_BIN_EXE_cx").into()), ..WorkerProcesses::default() };
    let executor = builder.isolation(Isolation::Process(workers)).build().unwrap();
    let typescript = "for await (const piece of llm.ask('x', { stream: true })) break;
        return await tools.provider.closed({})";
    check(&executor, Script::typescript(typescript), typescript).await;
    for leave in [
        "async for piece in llm.ask('x', stream=True):\n    break",
        "task = asyncio.create_task(llm.ask('silent', stream=True).__anext__())
await tools.provider.asked()
task.cancel()",
    ] {
        let source = format!("import asyncio\n{leave}\nawait tools.provider.closed()");
        check(&executor, Script::python(&*source), &source).await;
    }
}

/// A question would wait for ever for tokens that are reserved for an answer which its own script has begun and no
/// longer reads: it is refused, and the error says why.
#[tokio::test]
async fn v_577_a_question_does_not_wait_for_an_answer_that_is_not_read() {
    python().await;
    let provider = FakeProvider::start(ProviderKind::OpenAi, |_| Reply::Text("one two three".to_owned()));
    let executor =
        Executor::builder().llm(provider.options()).cache_directory(python_cache()).build().unwrap();
    let typescript = "
        for await (const piece of llm.ask('x', { stream: true, maxTokens: 6000 })) {
            try { await llm.ask('y', { maxTokens: 6000 }) } catch (error) { return [error.code, error.message] }
        }";
    let python = "
async for piece in llm.ask('x', stream=True, max_tokens=6000):
    try:
        await llm.ask('y', max_tokens=6000)
    except McpToolError as error:
        told = [error.code, str(error)]
        break
told";
    for script in [Script::typescript(typescript), Script::python(python)] {
        let result = executor.run(script).await.unwrap();
        let told = result.value().unwrap_or_else(|| panic!("{:#}", result.to_json()));
        assert_eq!(told[0], "MODEL_BUDGET_EXCEEDED", "{told}");
        assert!(told[1].as_str().unwrap().contains("has begun to read"), "{told}");
    }
}

/// Runs `before`, and then asks a question while the script waits for a tool between two pieces of another answer, for
/// longer than a question waits for an answer that is not read. Returns the result, whose value is the question's
/// answer.
async fn ask_while_a_tool_is_awaited(before: &str, limits: Limits) -> ExecuteResult {
    let provider = FakeProvider::start(ProviderKind::OpenAi, |_| Reply::Text("one two three".to_owned()));
    let slow = |_: Value| async {
        tokio::time::sleep(Duration::from_secs(7)).await;
        Ok::<_, String>("waited")
    };
    let quick = |_: Value| async { Ok::<_, String>("at once") };
    let builder = Executor::builder().llm(provider.options());
    let executor =
        builder.tool("slow.tool", Value::Null, slow).tool("quick.tool", Value::Null, quick).build().unwrap();
    let source = format!(
        "{before}
        const answer = llm.ask('x', {{ stream: true, maxTokens: 6000 }})[Symbol.asyncIterator]();
        await answer.next();
        const other = llm.ask('y', {{ maxTokens: 6000 }});
        await tools.slow.tool();
        while (!(await answer.next()).done);
        return await other"
    );
    let result = executor.run(Script::typescript(source).limits(limits)).await.unwrap();
    assert_eq!(result.value(), Some(&json!("one two three")), "{:?}", result.outcome);
    result
}

/// A script may wait for a tool between two pieces for any time, and reads on afterwards.
#[tokio::test]
async fn a_question_waits_while_its_script_waits_for_a_tool() {
    ask_while_a_tool_is_awaited("", Limits::default()).await;
}

/// Calls are waited for even if they are beyond the last one that has a record.
#[tokio::test]
async fn v_598_a_call_without_a_record_is_waited_for() {
    let calls = "for (let n = 0; n < 100; n++) await Promise.all(Array.from({ length: 100 }, () => tools.quick.tool()));";
    // A busy machine needs long for so many.
    let long = Duration::from_secs(200);
    let limits = Limits { tool_calls: 0, wall_time: long, cpu_time: long, ..Limits::default() };
    let result = ask_while_a_tool_is_awaited(calls, limits).await;
    assert_eq!(result.tool_calls.len(), ToolCallRecord::KEPT);
}

/// A stream that was left does not look complete; an iterator that is kept can be left and read on.
#[tokio::test]
async fn an_answer_that_was_left_is_not_read_on_in_silence() {
    python().await;
    let provider = FakeProvider::start(ProviderKind::OpenAi, |_| Reply::Text("one two three".to_owned()));
    let executor =
        Executor::builder().llm(provider.options()).cache_directory(python_cache()).build().unwrap();
    let source = "
answer = llm.ask('x', stream=True)
async for piece in answer:
    break
try:
    again = [piece async for piece in answer]
except RuntimeError as error:
    again = 'was left before its end' in str(error)
iterator = aiter(llm.ask('x', stream=True))
async for piece in iterator:
    break
kept = piece + ''.join([piece async for piece in iterator])
whole = llm.ask_sync('x', stream=True)
[again, kept, ''.join(whole), list(whole)]
";
    let result = executor.run(Script::python(source)).await.unwrap();
    let expected = json!([true, "one two three", "one two three", []]);
    assert_eq!(result.value(), Some(&expected), "{:#}", result.to_json());
}

/// The value of a script is awaited until it is not awaitable; a stream stays what it is.
#[tokio::test]
async fn an_answer_in_pieces_is_no_value() {
    python().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let provider = FakeProvider::start(ProviderKind::OpenAi, move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        Reply::Text("one".to_owned())
    });
    let executor =
        Executor::builder().llm(provider.options()).cache_directory(python_cache()).build().unwrap();
    let result = executor.run(Script::python("llm.ask('x', stream=True)")).await.unwrap();
    let message = &result.error().unwrap().message;
    assert!(message.contains("[x async for x in it]"), "{message}");
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

/// A promise in place of pieces would fail in the loop, and say something else.
#[tokio::test]
async fn what_is_extracted_has_no_pieces() {
    python().await;
    let provider = FakeProvider::start(ProviderKind::OpenAi, |_| Reply::Text("{}".to_owned()));
    let executor =
        Executor::builder().llm(provider.options()).cache_directory(python_cache()).build().unwrap();
    let typescript = "try {
            for await (const piece of llm.extract('x', {}, { stream: true }));
        } catch (error) {
            return [error.name, error.message.includes('stream')];
        }";
    let python = "
try:
    llm.extract('x', {}, stream=True)
except TypeError as error:
    told = [type(error).__name__, 'stream' in str(error)]
told
";
    for script in [Script::typescript(typescript), Script::python(python)] {
        let result = executor.run(script).await.unwrap();
        assert_eq!(result.value(), Some(&json!(["TypeError", true])), "{:#}", result.to_json());
    }
    assert!(provider.asked().is_empty());
}
