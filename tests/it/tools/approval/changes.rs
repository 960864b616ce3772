//! Tools and annotations that change, and rules of single servers.

use super::*;

/// Makes the server `chaos` list its tools again, and waits until the list is known.
async fn changed(executor: &Executor) {
    let definition = async || executor.run_ts("return await getToolSchema('chaos.pulled')").await.unwrap();
    let before = value(&definition().await).clone();
    assert_eq!(
        executor.run_ts("return await tools.chaos.add_tool({})").await.unwrap().value(),
        Some(&json!("added"))
    );
    let started = Instant::now();
    while *value(&definition().await) == before {
        assert!(started.elapsed() < WATCHDOG, "it never changed");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Threat 166: the answer was about the tool as it was when the prompt was shown.
#[tokio::test]
async fn di_166_a_tool_that_changes_under_the_question_is_not_called() {
    let directory = tempfile::tempdir().unwrap();
    let person = Person::default();
    let executor: Arc<Mutex<Option<Executor>>> = Arc::default();
    let approver = {
        let (person, executor) = (person.clone(), Arc::clone(&executor));
        move |request: ApprovalRequest| {
            let open = person.ask(&request);
            let (executor, is_first) = (executor.lock().clone().unwrap(), person.count() == 1);
            async move {
                // The server lists another definition while the person reads.
                let _open = open;
                if is_first {
                    changed(&executor).await;
                }
                Approval::Approve
            }
        }
    };
    let server = chaos::stdio("chaos", &["rug-pull"], &directory.path().join("notes"));
    let built = chaos::builder().mcp_server(server).ask(["chaos.pulled"]).approver(approver).build().unwrap();
    *executor.lock() = Some(built.clone());
    let source =
        "return await tools.chaos.pulled({ a: 1 }).then(() => [], (error) => [error.code, error.message])";
    let result = built.run_ts(source).await.unwrap();
    refused(&result, &Notes::default(), Refusal::Changed, &["changed while a person was asked"]);
    let noted = std::fs::read_to_string(directory.path().join("notes")).unwrap();
    assert!(!noted.contains("executed pulled"), "{noted}");
    // The second prompt is about the new definition, which no longer changes.
    let result = built.run_ts(source).await.unwrap();
    assert_eq!(statuses(&result), [ToolCallStatus::Ok], "{}", result.to_json());
    let descriptions: Vec<_> =
        person.asked.lock().iter().map(|request| request.description.clone().unwrap()).collect();
    assert_eq!(descriptions, ["Adds numbers", "Deletes everything"]);
    *executor.lock() = None;
    built.close().await;
}

/// Threats 154 and 166: a tool whose server adds `readOnlyHint` later still needs approval, and is not
/// called in a dry run.
#[tokio::test]
async fn tl_154_an_annotation_that_came_later_is_ignored() {
    let directory = tempfile::tempdir().unwrap();
    let person = Person::default();
    let server = chaos::stdio("chaos", &["rug-pull", "annotations"], &directory.path().join("notes"));
    let executor = chaos::builder()
        .mcp_server(server)
        .state_directory(directory.path().join("state"))
        .ask(["destructive"])
        .read_only(["chaos.add_tool"])
        .approver(person.saying(&no(""), NOW))
        .build()
        .unwrap();
    let call = "return call_tool('chaos', 'pulled', { a: 1 }).ok";
    assert_eq!(executor.run_ts(call).await.unwrap().value(), Some(&json!(false)));
    changed(&executor).await;
    let hints = executor.run_ts("return (await getToolSchema('chaos.pulled')).annotations").await.unwrap();
    assert_eq!(value(&hints), &json!({ "readOnlyHint": true }));
    assert_eq!(executor.run_ts(call).await.unwrap().value(), Some(&json!(false)));
    assert_eq!(person.count(), 2);
    let dry = async || executor.run(Script::typescript(call).dry_run()).await.unwrap();
    assert_eq!(statuses(&dry().await), [ToolCallStatus::Simulated]);
    // Once a person has accepted the definition, its annotations count.
    assert_eq!(executor.accept_tools("chaos", Some("pulled")).unwrap(), 1);
    executor.refresh_tools().await;
    assert_eq!(statuses(&dry().await), [ToolCallStatus::Ok]);
    executor.close().await;
}

/// Copies the files of a directory, with their rights.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Threats 166 and 167: a remembered definition is enough to make a call, and not enough to skip a prompt.
#[tokio::test]
async fn di_167_an_annotation_from_before_is_looked_at_again() {
    let directory = tempfile::tempdir().unwrap();
    let person = Person::default();
    let process = || {
        let server =
            chaos::stdio("chaos", &["rug-pull", "restart-annotations"], &directory.path().join("notes"));
        let builder = chaos::builder().mcp_server(server).ask(["destructive"]);
        let builder = builder.cache_directory(directory.path().join("cache"));
        let builder = builder.state_directory(directory.path().join("state"));
        builder.approver(person.saying(&no(""), NOW)).build().unwrap()
    };
    let call = "return call_tool('chaos', 'pulled', { a: 1 }).ok";
    let dry = Script::typescript(call).dry_run();
    let first = process();
    let called = first.run_ts(call).await.unwrap();
    assert_eq!(value(&called), &json!(true), "{:?}", person.asked.lock());
    assert_eq!(statuses(&first.run(dry.clone()).await.unwrap()), [ToolCallStatus::Ok]);
    assert_eq!(person.count(), 0, "it said that it only reads");
    first.close().await;
    copy(&directory.path().join("cache"), &directory.path().join("kept"));
    // In between, the tool has lost these annotations. The definition that the person is shown is also only remembered,
    // and their approval does not hold for the new one.
    let remembering = process();
    let yes = Script::typescript(call).ask(["chaos.pulled"]).approver(person.saying(&Approval::Approve, NOW));
    let result = remembering.run(yes).await.unwrap();
    assert_eq!(statuses(&result), [ToolCallStatus::NotApproved(Refusal::Changed)]);
    assert_eq!(person.asked.lock().drain(..).count(), 1);
    remembering.close().await;
    std::fs::remove_dir_all(directory.path().join("cache")).unwrap();
    std::fs::rename(directory.path().join("kept"), directory.path().join("cache")).unwrap();
    let second = process();
    assert_eq!(statuses(&second.run(dry).await.unwrap()), [ToolCallStatus::Simulated]);
    second.close().await;
    let third = process();
    assert_eq!(third.run_ts(call).await.unwrap().value(), Some(&json!(false)));
    assert_eq!(person.count(), 1);
    third.close().await;
    let noted = std::fs::read_to_string(directory.path().join("notes")).unwrap();
    assert_eq!(noted.matches("executed pulled").count(), 2, "{noted}");
}

/// The rules in a server's entry about its own tools.
#[tokio::test]
async fn a_server_has_lists_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let person = Person::default();
    let mut asking = chaos::stdio("asking", &["well"], &directory.path().join("asking"));
    asking.rules = ToolRules::new().ask(["c*", "open-world"]).read_only(["echo"]);
    let mut other = chaos::stdio("other", &["well"], &directory.path().join("other"));
    other.rules = ToolRules::new().ask(["destructive"]).read_only(["c*", "echo"]);
    let builder = chaos::builder().mcp_server(asking).mcp_server(other);
    let executor = builder.approver(person.saying(&Approval::Approve, NOW)).build().unwrap();
    let source = "for (const server of ['asking', 'other'])
            for (const tool of ['count', 'echo', 'add_tool']) await tools[server][tool]({})";
    let result = executor.run_ts(source).await.unwrap();
    assert_eq!(code(&result), None, "{}", result.to_json());
    let asked: Vec<_> = person
        .asked
        .lock()
        .iter()
        .map(|request| format!("{} {}", request.call_text(), request.reason))
        .collect();
    let reaches = "it may reach beyond its server, and `ask` has `open-world`";
    let expected = [
        "asking.count `ask` names it: `asking.c*`".to_owned(),
        format!("asking.echo {reaches}"),
        format!("asking.add_tool {reaches}"),
        "other.add_tool it may destroy something, and `ask` has `destructive`".to_owned(),
    ];
    assert_eq!(asked, expected);
    let result = executor.run(Script::typescript(source).dry_run()).await.unwrap();
    let calls: Vec<_> =
        planned(&result).iter().map(|call| format!("{}.{}", call.server, call.tool)).collect();
    assert_eq!(calls, ["asking.count", "asking.add_tool", "other.add_tool"]);
    executor.close().await;
}

/// The policy holds for requests for resources and prompts as for tools.
#[tokio::test]
async fn tl_145_resources_are_asked_about_too() {
    let (notes, person) = (Notes::default(), Person::default());
    let executor =
        notes.builder().ask(["notes.resources/*"]).approver(person.saying(&no(""), NOW)).build().unwrap();
    let source = "return await mcp.readResource('notes', 'a://b').catch((error) => error.code)";
    let result = run(&executor, Script::typescript(source)).await;
    assert_eq!(value(&result), "TOOL_DENIED");
    let asked = person.asked.lock().clone();
    assert_eq!(
        (&*asked[0].tool, &asked[0].arguments),
        ("resources/read", json!({ "uri": "a://b" }).as_object().unwrap())
    );
    let source = "return await mcp.listPrompts('notes').catch((error) => error.code)";
    assert_eq!(value(&run(&executor, Script::typescript(source)).await), "TOOL_NOT_FOUND");
    assert_eq!(person.count(), 1);
}
