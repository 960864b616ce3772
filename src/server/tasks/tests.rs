use std::collections::BTreeSet;

use rmcp::model::ContentBlock;

use super::*;

fn ended(client: &str, kept: Duration, bytes: usize) -> Task {
    let ended = Arc::new(OnceLock::from(TaskEnd { at: Instant::now(), bytes }));
    Task { client: client.to_owned(), manager: TaskManager::new(), kept, ended }
}

/// Threat 701.
#[test]
fn v_701_results_of_ended_tasks_are_bounded_for_each_client() {
    let state = Arc::new(Mutex::new(TasksState::default()));
    let end = |client: &str, number: usize, kept: Duration| {
        let mut state = state.lock();
        state.tasks.insert(format!("{client} {number}"), ended(client, kept, 1));
        state.drop_ended(client);
    };
    end("b", 0, KEPT);
    for number in 0..2 * MAX_ENDED {
        end("a", number, KEPT);
    }
    let ids = || state.lock().tasks.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(ids().len(), MAX_ENDED + 1);
    assert!(ids().contains("b 0") && !ids().contains("a 0"), "the oldest ones of the same client go");
    assert!(ids().contains(&format!("a {}", 2 * MAX_ENDED - 1)));
    end("b", 1, Duration::ZERO);
    assert!(!ids().contains("b 1"), "an expired one goes");
    for client in 0..=MAX_ENDED_OF_ALL / MAX_ENDED {
        (0..MAX_ENDED).for_each(|number| end(&format!("c{client}"), number, KEPT));
    }
    assert_eq!(ids().len(), MAX_ENDED_OF_ALL);
    assert!(!ids().contains("b 0") && !ids().contains("c0 0"), "the oldest ones of all clients go");
}

/// Threat 701. Results can have images of megabytes, and a client can have many sessions.
#[test]
fn v_701_results_of_ended_tasks_are_bounded_together() {
    let all = AllTasks::default();
    let states: Vec<Arc<Mutex<TasksState>>> = (0..2).map(|_| Arc::default()).collect();
    states.iter().for_each(|state| all.add(state));
    let end = |session: usize, client: &str, number: usize, bytes: usize| {
        states[session].lock().tasks.insert(format!("{client} {number}"), ended(client, KEPT, bytes));
        drop(all.drop_ended(1_000));
    };
    let ids = |session: usize| states[session].lock().tasks.keys().cloned().collect::<BTreeSet<_>>();
    let named = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
    end(0, "a", 0, 300);
    (0..10).for_each(|number| end(1, "b", number, 300));
    assert_eq!(
        (ids(0), ids(1)),
        (named(&["a 0"]), named(&["b 8", "b 9"])),
        "the client with most loses its oldest"
    );
    // The newest stays whatever it takes.
    end(0, "c", 0, 5_000);
    assert_eq!((ids(0), ids(1)), (named(&["c 0"]), named(&[])));
    // Tasks that have not ended, and sessions that have, do not count.
    let unended = Task { ended: Arc::default(), ..ended("d", KEPT, 0) };
    states[1].lock().tasks.insert("d 0".to_owned(), unended);
    end(1, "e", 0, 400);
    assert_eq!((ids(0), ids(1)), (named(&[]), named(&["d 0", "e 0"])));
}

/// Threat 701. Clients with one large result each, of which one opens any number, do not drop the small ones of others.
#[test]
fn v_701_small_results_stay_beside_large_ones() {
    let all = AllTasks::default();
    let states: Vec<Arc<Mutex<TasksState>>> = (0..4).map(|_| Arc::default()).collect();
    states.iter().for_each(|state| all.add(state));
    let end = |session: usize, client: &str, number: usize, bytes: usize| {
        states[session].lock().tasks.insert(format!("{client} {number}"), ended(client, KEPT, bytes));
        drop(all.drop_ended(1_000));
    };
    let ids = || {
        let of_session =
            |state: &Arc<Mutex<TasksState>>| state.lock().tasks.keys().cloned().collect::<Vec<_>>();
        states.iter().flat_map(of_session).collect::<BTreeSet<_>>()
    };
    let named = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
    (0..2).for_each(|number| end(0, "small", number, 100));
    (1..4).for_each(|session| end(session, "large", session, 500));
    assert_eq!(ids(), named(&["large 3", "small 0", "small 1"]));
    // The clients of a tenant are one holder.
    for (session, client, bytes) in [(1, "t/1", 150), (2, "t/2", 150), (3, "u/3", 260), (0, "v/4", 250)] {
        end(session, client, 0, bytes);
    }
    assert_eq!(ids(), named(&["small 0", "small 1", "t/2 0", "u/3 0", "v/4 0"]));
}

/// Threat 701.
#[test]
fn v_701_a_task_that_ends_takes_the_place_of_earlier_ones() {
    let all = Arc::<AllTasks>::default();
    let tasks = Tasks::new(&all);
    for number in 0..3 {
        let task = Task { ended: Arc::default(), ..ended("a", KEPT, 0) };
        let end = EndOfTask {
            ended: Arc::clone(&task.ended),
            bytes: MAX_ENDED_BYTES / 2 + 1,
            state: Arc::downgrade(&tasks.state),
            all: Arc::clone(&all),
            slot: tasks.slot("a").unwrap(),
        };
        tasks.state.lock().tasks.insert(number.to_string(), task);
        drop(end);
    }
    assert_eq!(tasks.state.lock().tasks.keys().collect::<Vec<_>>(), ["2"]);
}

/// Threat 701.
#[test]
fn v_701_the_bytes_of_a_result_are_those_that_are_sent() {
    let image = "i".repeat(1_000);
    let result = CallToolResult::success(vec![ContentBlock::image(image, "image/png")]);
    assert_eq!(json_bytes(&result), serde_json::to_vec(&result).unwrap().len());
}
