use tokio::runtime::Handle;

use super::*;

const RUN_BYTES: usize = 64 << 20;

/// All runs wait for scripts that they call, and the queue is full of others.
#[tokio::test]
async fn v_582_a_called_script_has_the_permit_of_its_depth_when_the_queue_is_full() {
    let memory = TotalMemory { bytes: 1 << 30, source: MemorySource::Option };
    let admission = Admission::new(1, memory, 0, Duration::from_secs(60));
    let (runtime, cancel) = (Handle::current(), CancellationToken::new());
    let caller = admission.enter(&runtime, RUN_BYTES, &cancel).await.ok().unwrap();
    let refused = admission.enter(&runtime, RUN_BYTES, &cancel).await.err().unwrap();
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (ErrorCode::QueueFull, "0 runs are waiting already")
    );
    let called = admission.enter_nested(&runtime, 0, RUN_BYTES, &cancel).await.ok().unwrap();
    assert!(matches!(called, NestedPermit::Reserved(_)));
    // There is one for each depth.
    let second = admission.enter_nested(&runtime, 0, RUN_BYTES, &cancel).await.err().unwrap();
    assert_eq!(second.code, ErrorCode::QueueFull);
    let deeper = admission.enter_nested(&runtime, 1, RUN_BYTES, &cancel).await.ok().unwrap();
    assert!(matches!(deeper, NestedPermit::Reserved(_)));
    drop(called);
    // A run that was cancelled does not begin with a permit of its depth.
    cancel.cancel();
    let cancelled = admission.enter_nested(&runtime, 0, RUN_BYTES, &cancel).await.err().unwrap();
    assert_eq!(cancelled.code, ErrorCode::QueueFull);
    drop(caller);
}
