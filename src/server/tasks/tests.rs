use super::*;

/// Threat 701.
#[test]
fn v_701_results_of_ended_tasks_are_bounded_for_each_client() {
    let state = Arc::new(Mutex::new(TasksState::default()));
    let end = |client: &str, number: usize, kept: Duration| {
        let task = Task {
            client: client.to_owned(),
            manager: TaskManager::new(),
            kept,
            ended: Arc::new(OnceLock::from(Instant::now())),
        };
        let mut state = state.lock();
        state.tasks.insert(format!("{client} {number}"), task);
        state.drop_ended(client);
    };
    end("b", 0, KEPT);
    for number in 0..2 * MAX_ENDED {
        end("a", number, KEPT);
    }
    let ids = || state.lock().tasks.keys().cloned().collect::<std::collections::BTreeSet<_>>();
    assert_eq!(ids().len(), MAX_ENDED + 1);
    assert!(ids().contains("b 0") && !ids().contains("a 0"), "the oldest ones of the same client go");
    assert!(ids().contains(&format!("a {}", 2 * MAX_ENDED - 1)));
    end("b", 1, Duration::ZERO);
    assert!(!ids().contains("b 1"), "an expired one goes");
}
